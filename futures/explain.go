package futures

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/results"
)

const (
	// probeWait bounds how long Explain waits for workers, maxProbes how many it asks.
	probeWait = time.Second
	maxProbes = 4
)

// Explain says why a future is not running, or where its result is. Of a result that is
// an object it tries to read the beginning, for a second at most: if no worker that has
// it can be reached from here, the reason is unreachable, and the text says why. It
// returns ErrNotFound.
func (c *Client) Explain(ctx context.Context, id ID) (Explanation, error) {
	e, err := inspect.Explain(ctx, c.cluster, id)
	if err != nil || len(e.Holders) == 0 || c.manual() {
		return e, err
	}
	copies, err := results.Of(c.cluster).Copies(ctx, id)
	if err != nil {
		return e, err
	}
	if why := c.probe(ctx, copies); why != "" {
		e.Reason = inspect.ReasonUnreachable
		e.Text += " It can't be read from here: " + why
	}
	return e, nil
}

// probe tries to read copies, and returns why none can be; "" if one can, or none is
// left.
func (c *Client) probe(ctx context.Context, copies []results.Copy) string {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	type answer struct {
		of  *results.Copy
		err error
	}
	answers, asked := make(chan answer, len(copies)), 0
	for i := range copies {
		if held := &copies[i]; held.Alive && asked < maxProbes {
			asked++
			go func() { answers <- answer{held, results.Of(c.cluster).Probe(ctx, held)} }()
		}
	}
	var whys []string
	far := true
	for range asked {
		a := <-answers
		if a.err == nil {
			return ""
		}
		whys = append(whys, fmt.Sprintf("worker %s: %s", a.of.Worker, strings.ReplaceAll(a.err.Error(), "\n", "; ")))
		far = far && !strings.Contains(a.of.Objects, "tcp:")
	}
	if len(whys) == 0 {
		return ""
	}
	text := strings.Join(whys, "; ") + "."
	if far {
		text += " A worker without --object-listen serves its own machine alone, by a socket. If that was removed, what " +
			"only this worker has is lost when it stops: values that were put have to be put again."
	}
	return text
}
