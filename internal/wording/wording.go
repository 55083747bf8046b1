// Package wording says counts, times and names as people read them.
package wording

import (
	"fmt"
	"strings"
	"time"
)

// Count counts things: "1 key", "2 keys".
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Brief is a time to two digits or so.
func Brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(d, 0).Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dmin", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}

// Function cuts the middle of the long name of a module.
func Function(name string) string {
	if id, ok := strings.CutPrefix(name, "wasm:"); ok && len(id) > 30 {
		return "wasm:" + id[:6] + "…" + id[len(id)-8:]
	}
	return name
}

// Because adds a reason to a sentence, if there is one.
func Because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
