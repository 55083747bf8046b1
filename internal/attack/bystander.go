package attack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/futures"
)

// Step is a thing that a bystander does again and again.
type Step struct {
	Name string
	Do   func(ctx context.Context, round int) error
}

// Bystander goes through its steps until Stop, and notes how long each took.
type Bystander struct {
	cancel context.CancelFunc
	ended  chan struct{}
	round  chan struct{} // has a value after each round that someone waits for

	mu     sync.Mutex
	waits  int // rounds that are waited for
	rounds int
	worst  Wait
	times  []time.Duration // of all steps
	err    error
	close  func()
}

// Wait is how long a step took.
type Wait struct {
	Step string
	Time time.Duration
}

// patience is when a bystander gives up on a step.
const patience = 30 * time.Second

// NewBystander starts one. close is called at its end.
func NewBystander(steps []Step, close func()) *Bystander {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bystander{cancel: cancel, ended: make(chan struct{}), round: make(chan struct{}), close: close}
	go b.run(ctx, steps)
	return b
}

func (b *Bystander) run(ctx context.Context, steps []Step) {
	defer close(b.ended)
	defer b.close()
	for round := 0; ; round++ {
		for _, s := range steps {
			start := time.Now()
			doing, cancel := context.WithTimeout(ctx, patience)
			err := s.Do(doing, round)
			cancel()
			if ctx.Err() != nil {
				return
			}
			b.note(Wait{s.Name, time.Since(start)}, err)
		}
		b.mu.Lock()
		b.rounds++
		waits := b.waits > 0
		if waits {
			b.waits--
		}
		b.mu.Unlock()
		if waits {
			b.round <- struct{}{}
		}
	}
}

func (b *Bystander) note(w Wait, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times = append(b.times, w.Time)
	if w.Time > b.worst.Time {
		b.worst = w
	}
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("%s, after %v: %w", w.Step, w.Time, err)
	}
}

// Go waits for n more rounds, not counting one that has begun.
func (b *Bystander) Go(n int) {
	b.mu.Lock()
	b.waits += n + 1
	b.mu.Unlock()
	for range n + 1 {
		<-b.round
	}
}

// Take returns the longest step and the first error since the last call.
func (b *Bystander) Take() (worst Wait, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	worst, err = b.worst, b.err
	b.worst, b.err, b.times = Wait{}, nil, nil
	return worst, err
}

// Median returns how long a step took in the median since the last Take, or zero if there was none.
func (b *Bystander) Median() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(b.times))
	return sorted[len(sorted)/2]
}

// Rounds returns how many rounds there were.
func (b *Bystander) Rounds() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rounds
}

// Stop ends the bystander. It may not be called while Go waits.
func (b *Bystander) Stop() {
	b.cancel()
	<-b.ended
}

// Function is what bystanders submit: it returns its input.
const Function = "wasm:copy"

// HTTP returns the steps of a client of the HTTP API: on a connection that it
// keeps, and on new ones. A connection that is closed before an answer came is
// replaced at once, as Go's client does for requests that may be repeated.
func HTTP(url, token string) (steps []Step, closing func()) {
	kept, fresh := &http.Transport{}, &http.Transport{DisableKeepAlives: true}
	c := &client{url: url, token: token, name: strconv.FormatInt(time.Now().UnixNano(), 36)}
	return []Step{
		{"submit and await over HTTP", func(ctx context.Context, round int) error {
			return c.submit(ctx, kept, "kept", round, "{}")
		}},
		{"list over HTTP", func(ctx context.Context, _ int) error {
			_, err := c.send(ctx, kept, http.MethodGet, "/api/v1/futures?limit=5", "", "")
			return err
		}},
		{"submit and await on a new connection", func(ctx context.Context, round int) error {
			return c.submit(ctx, fresh, "fresh", round, "{}")
		}},
		{"health", func(ctx context.Context, _ int) error {
			_, err := c.send(ctx, fresh, http.MethodGet, "/api/v1/health", "", "")
			return err
		}},
	}, kept.CloseIdleConnections
}

// Labelled returns the step of a client whose futures only workers with the label place=peer may run.
func Labelled(url, token string) []Step {
	over := &http.Transport{DisableKeepAlives: true}
	c := &client{url: url, token: token, name: strconv.FormatInt(time.Now().UnixNano(), 36)}
	return []Step{{"submit to the peer and await", func(ctx context.Context, round int) error {
		return c.submit(ctx, over, "labelled", round, `{"labels":{"place":"peer"}}`)
	}}}
}

// Crowd returns the steps of a client that submits one future, and then n at once, and awaits all of them.
func Crowd(url, token string, n int) (steps []Step, closing func()) {
	over := &http.Transport{MaxIdleConnsPerHost: n}
	c := &client{url: url, token: token, name: strconv.FormatInt(time.Now().UnixNano(), 36)}
	return []Step{
		{"submit one and await", func(ctx context.Context, round int) error {
			return c.submit(ctx, over, "one", round, "{}")
		}},
		{"submit many and await", func(ctx context.Context, round int) error {
			errs := make([]error, n)
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { errs[i] = c.submit(ctx, over, fmt.Sprint("many", i, "-"), round, "{}") })
			}
			all.Wait()
			return errors.Join(errs...)
		}},
	}, over.CloseIdleConnections
}

// client sends requests.
type client struct {
	url, token, name string
}

// submit awaits a future with requirements.
func (c *client) submit(ctx context.Context, over http.RoundTripper, kind string, round int, requirements string,
) error {
	key := fmt.Sprint(c.name, kind, round)
	content, err := c.send(ctx, over, http.MethodPost, "/api/v1/futures?wait=20s",
		fmt.Sprintf(`{"function":%q,"args":%q,"requirements":%s}`, Function, key, requirements), key)
	if err != nil {
		return err
	}
	var f struct {
		State  string
		Result struct{ Value struct{ Data string } }
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return err
	}
	if f.State != "realized" || f.Result.Value.Data != key {
		return fmt.Errorf("the answer to %q is %s", key, content)
	}
	return nil
}

// replacing is for how long a request is sent again on connections that are closed: who has a token is
// served within that time.
const replacing = time.Second

func (c *client) send(ctx context.Context, over http.RoundTripper, method, path, body, key string) ([]byte, error) {
	var errs []error
	for start := time.Now(); len(errs) == 0 || time.Since(start) < replacing; {
		r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader([]byte(body)))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+c.token)
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		response, err := over.RoundTrip(r)
		if err != nil {
			if errs = append(errs, err); ctx.Err() != nil {
				return nil, fmt.Errorf("%s %s: %w", method, path, err)
			}
			continue
		}
		content, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			errs = append(errs, err)
			continue
		}
		if response.StatusCode >= http.StatusBadRequest {
			return nil, fmt.Errorf("%s %s: %s: %s", method, path, response.Status, content)
		}
		return content, nil
	}
	return nil, fmt.Errorf("%s %s: %d connections were closed within %v: %w", method, path, len(errs), replacing, errs[0])
}

// Store returns the steps of a client of a served store.
func Store(ctx context.Context, name string) (steps []Step, closing func(), err error) {
	db, err := kvopen.Open(ctx, name, kvopen.Options{})
	if err != nil {
		return nil, nil, err
	}
	c, err := futures.New(ctx, db, futures.Options{})
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	closing = func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = c.Close(ctx) // the server may have ended
		_ = db.Close()
	}
	return []Step{{"submit and await over the store", func(ctx context.Context, round int) error {
		want := strconv.Itoa(round)
		f, err := c.Submit(ctx, futures.Task{Function: Function, Args: []byte(want)})
		if err != nil {
			return err
		}
		got, err := f.Await(ctx)
		if err == nil && string(got.Value) != want {
			err = fmt.Errorf("the result is %q", got.Value)
		}
		return err
	}}}, closing, nil
}
