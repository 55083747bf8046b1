package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/futura-run/futura/internal/console"
)

// warnOfMisspelt names variables of the environment that are no settings and look as if they were to be. Others may
// have names that begin alike, such as those that Kubernetes makes for a service.
func warnOfMisspelt(cmd *cobra.Command, environ []string, settings map[string]*pflag.Flag) {
	known := []string{envName(configFlag), "FUTURA_REMOTE_TOKEN"}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		known = append(known, envName(key))
	}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		rest, is := strings.CutPrefix(name, "FUTURA_")
		if !is || value == "" || slices.Contains(known, name) {
			continue
		}
		meant := nearest(rest, known)
		if whole := envName(section(cmd)) + "_" + rest; slices.Contains(known, whole) {
			meant = whole
		}
		if meant != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "futura: %s in the environment is no setting, and is ignored: did you mean %s?\n",
				console.Printable(name), meant)
		}
	}
}

// nearest is the name of a setting that becomes another by one letter left out, added or exchanged, two if it is
// not short, and empty if none does.
func nearest(rest string, known []string) (name string) {
	least := 1
	if len(rest) > 5 {
		least = 2
	}
	for _, k := range known {
		if n := distance(rest, strings.TrimPrefix(k, "FUTURA_"), least); n < least || n == least && name == "" {
			name, least = k, n
		}
	}
	return name
}

// distance is how many letters are to be left out, added or exchanged to make b of a. It is more than most if the
// lengths say so.
func distance(a, b string, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	before := make([]int, len(b)+1)
	for j := range before {
		before[j] = j
	}
	for i := range len(a) {
		now := []int{i + 1}
		for j := range len(b) {
			exchanged := before[j]
			if a[i] != b[j] {
				exchanged++
			}
			now = append(now, min(exchanged, before[j+1]+1, now[j]+1))
		}
		before = now
	}
	return before[len(b)]
}
