package main

import (
	"context"
	"fmt"

	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/internal/console"
)

// progressLine is how far a function is.
func progressLine(done, total int64, text string) string {
	line := fmt.Sprint(done)
	if total > 0 {
		line = fmt.Sprintf("%d of %d", done, total)
		if done <= total {
			line += fmt.Sprintf(" (%d %%)", percent(done, total))
		}
	}
	if text != "" {
		line += ": " + console.Printable(firstLine(text))
	}
	return line
}

// showProgress says how far a future is whenever it has told, until stop is called.
func (a *app) showProgress(ctx context.Context, c *futures.Client, id futures.ID) (stop func()) {
	return meanwhile(ctx, func(ctx context.Context) {
		var last futures.Progress
		// Its errors are those of the await.
		_ = c.Follow(ctx, id, func(v futures.View) error {
			if p := v.Progress; p != nil && *p != last {
				last = *p
				fmt.Fprintf(a.err, "%s: %s\n", id, progressLine(p.Done, p.Total, p.Text))
			}
			return nil
		})
	})
}
