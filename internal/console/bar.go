package console

import (
	"cmp"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// barInterval is how often a bar moves.
const barInterval = 100 * time.Millisecond

// Progress shows a bar with rate and time left on a terminal. It is nil for other writers.
func Progress(w io.Writer, unit string) func(done, all int) {
	f := Terminal(w)
	if f == nil {
		return nil
	}
	var bar *progressbar.ProgressBar
	return func(done, all int) {
		if bar == nil {
			bar = progressbar.NewOptions(all, progressbar.OptionSetWriter(f), progressbar.OptionShowCount(),
				progressbar.OptionShowIts(), progressbar.OptionSetItsString(unit), progressbar.OptionSetPredictTime(true),
				progressbar.OptionThrottle(barInterval), progressbar.OptionClearOnFinish())
		}
		_ = bar.Set(done)
	}
}

// Transfer is a bar for bytes on a terminal, and nil for other writers. The size is -1 if it is
// not known.
func Transfer(w io.Writer, what string, size int64) *progressbar.ProgressBar {
	f := Terminal(w)
	if f == nil {
		return nil
	}
	return progressbar.NewOptions64(size, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true), progressbar.OptionShowTotalBytes(true), progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(barInterval), progressbar.OptionClearOnFinish())
}

// Stage is a bar for one of several stages, or a spinner for one whose size is 0. It moves
// when it is set.
func Stage(w io.Writer, description string, all int) *progressbar.ProgressBar {
	all = cmp.Or(all, -1)
	return progressbar.NewOptions(all, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(description),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(20), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetSpinnerChangeInterval(0)) // it turns when it is drawn
}
