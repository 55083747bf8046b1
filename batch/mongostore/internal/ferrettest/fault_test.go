package ferrettest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/futura-run/futura/batch"
	"github.com/futura-run/futura/batch/mongostore"
)

// scene is a server with a store and a batch.
type scene struct {
	*testing.T
	proxy *proxy
	s     *mongostore.Store
	id    string
	now   time.Time
}

func newScene(t *testing.T) *scene {
	p := startServer(t)
	return &scene{T: t, proxy: p, s: open(t, p.uri()), now: time.Now().UTC().Truncate(time.Millisecond)}
}

// begin makes another batch of n items that may be tried twice.
func (s *scene) begin(n int) {
	s.id = uuid.NewString()
	require.NoError(s, s.create(n))
}

func (s *scene) create(n int) error {
	arguments := make([][]string, n)
	for i := range arguments {
		arguments[i] = []string{fmt.Sprint(i % 3)}
	}
	return s.s.Create(s.Context(), &batch.Batch{
		ID: s.id, MaxAttempts: 2, CreatedAt: s.now, Template: batch.Template{FunctionID: "f", Method: "m"},
	}, arguments)
}

func (s *scene) chunk() *batch.Chunk {
	return &batch.Chunk{ID: "11111111-2222-4333-8444-555555555555", Batch: s.id, Worker: "w", CreatedAt: s.now}
}

func (s *scene) assign(items ...int) error {
	given, err := s.s.Assign(s.Context(), s.chunk(), items)
	if err == nil {
		require.Equal(s, items, given)
	}
	return err
}

// complete ends attempts: even items well, the others not.
func (s *scene) complete(items ...int) error {
	var ended []batch.Completion
	for _, i := range items {
		ended = append(ended, batch.Completion{
			Index: i, Result: batch.Result{Stdout: fmt.Sprint(i), ExitCode: i % 2}, Failed: i%2 != 0, DueAt: s.now, At: s.now,
		})
	}
	_, err := s.s.Complete(s.Context(), s.id, s.chunk().ID, ended)
	return err
}

func (s *scene) settle() error {
	_, err := s.s.Settle(s.Context(), s.id, s.now)
	return err
}

func (s *scene) cancel() error {
	err := s.s.Cancel(s.Context(), s.id, "enough", s.now)
	if errors.Is(err, batch.ErrState) {
		return nil
	}
	return err
}

func (s *scene) remove() error {
	err := s.s.Delete(s.Context(), s.id)
	if errors.Is(err, batch.ErrNotFound) {
		return nil
	}
	return err
}

// require checks the batch's state and its items'.
func (s *scene) require(status batch.Status, items ...batch.Status) []batch.Item {
	s.Helper()
	b, err := s.s.Get(s.Context(), s.id)
	require.NoError(s, err)
	require.Equal(s, status, b.Status)
	found, err := s.s.Items(s.Context(), s.id, 0, 100)
	require.NoError(s, err)
	var got []batch.Status
	for _, item := range found {
		got = append(got, item.Status)
	}
	require.Equal(s, items, got)
	return found
}

// requireChunk checks that there is one chunk, in a state.
func (s *scene) requireChunk(status batch.Status, items int) {
	s.Helper()
	chunks, err := s.s.Chunks(s.Context(), s.id)
	require.NoError(s, err)
	require.Len(s, chunks, 1)
	require.Equal(s, status, chunks[0].Status)
	require.Equal(s, items, chunks[0].Items)
}

// requireGone checks that no document of the batch is left.
func (s *scene) requireGone() {
	s.Helper()
	ctx := context.Background()
	client, err := mongo.Connect(options.Client().ApplyURI(s.proxy.uri()))
	require.NoError(s, err)
	defer func() { require.NoError(s, client.Disconnect(ctx)) }()
	for _, name := range mongostore.Collections() {
		key := "batch_id"
		if name == "b7s-batches" {
			key = "id"
		}
		n, err := client.Database(mongostore.DefaultDatabase).Collection(name).
			CountDocuments(ctx, bson.D{{Key: key, Value: s.id}})
		require.NoError(s, err)
		require.Zero(s, n, name)
	}
}

// quiet are commands that the driver sends when it likes.
func quiet(c *command) bool {
	return slices.Contains([]string{"hello", "ismaster", "isMaster", "ping", "endSessions", "killCursors"}, c.name)
}

// shutdown is the answer of a server that goes away.
var shutdown = bson.D{
	{Key: "ok", Value: float64(0)}, {Key: "code", Value: int32(11600)}, {Key: "codeName", Value: "InterruptedAtShutdown"},
	{Key: "errmsg", Value: "interrupted at shutdown"},
}

// internal is the answer of a server that does not know what happened. The
// driver does not repeat such a command.
var internal = bson.D{{Key: "ok", Value: float64(0)}, {Key: "code", Value: int32(1)},
	{Key: "codeName", Value: "InternalError"}, {Key: "errmsg", Value: "made by the test"}}

// TestCallsThatAreCutOffCanBeRepeated makes each command of each call fail in
// each way, repeats the call, and checks that it did what it should, once.
func TestCallsThatAreCutOffCanBeRepeated(t *testing.T) {
	t.Parallel()
	const created, running, done, failed, lost = batch.Created, batch.InProgress, batch.Done, batch.Failed,
		batch.PermanentlyFailed
	for name, c := range map[string]struct {
		before, call func(s *scene) error
		after        func(s *scene)
	}{
		"Assign": {nil, func(s *scene) error { return s.assign(0, 1) }, func(s *scene) {
			s.require(running, running, running, created)
			s.requireChunk(running, 2)
		}},
		"Complete": {func(s *scene) error { return s.assign(0, 1, 2) },
			func(s *scene) error { return s.complete(0, 1) }, func(s *scene) {
				items := s.require(running, done, failed, running)
				require.Equal(s, 1, items[1].Attempts)
				require.Equal(s, "1", items[1].Result.Stdout)
			}},
		"Release": {func(s *scene) error { return s.assign(0, 1) }, func(s *scene) error {
			_, err := s.s.Release(s.Context(), s.id, s.chunk().ID)
			return err
		}, func(s *scene) {
			for _, item := range s.require(running, created, created, created) {
				require.Zero(s, item.Attempts)
			}
			s.requireChunk(failed, 2)
		}},
		"Settle": {func(s *scene) error { return s.finish() }, (*scene).settle, func(s *scene) {
			s.require(done, done, lost, done)
			s.requireChunk(done, 3)
		}},
		"Cancel": {func(s *scene) error { return s.assign(0) }, (*scene).cancel, func(s *scene) {
			s.require(lost, running, lost, lost)
		}},
		"Cancel and Settle": {func(s *scene) error { return s.assign(0) }, func(s *scene) error {
			return errors.Join(s.cancel(), s.settle(), s.cancel())
		}, func(s *scene) { s.require(lost, running, lost, lost) }},
		"Retry": {func(s *scene) error { return errors.Join(s.finish(), s.settle()) }, func(s *scene) error {
			_, err := s.s.Retry(s.Context(), s.id)
			return err
		}, func(s *scene) {
			require.Zero(s, s.require(running, done, created, done)[1].Attempts)
		}},
		"Delete": {func(s *scene) error { return errors.Join(s.finish(), s.settle()) }, (*scene).remove,
			(*scene).requireGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			for n, hit := 0, true; hit; n++ {
				for way, f := range faults(n) {
					s.begin(3)
					if c.before != nil {
						require.NoError(t, c.before(s))
					}
					hit = s.failAt(n, f, func() error { return c.call(s) })
					c.after(s)
					if !hit {
						break
					}
					t.Logf("command %d %s", n, way)
				}
			}
		})
	}
}

// faults are the ways in which the n-th command of a call fails: in a short run, each
// one has been applied, and some of them have not. After a connection is cut the driver
// looks for the server for half a second.
func faults(n int) map[string]fault {
	all, long := map[string]fault{"applied": {answer: internal, applied: true}}, os.Getenv("FUTURA_LONG") == "1"
	if long || n%3 == 0 {
		all["refused"] = fault{answer: internal}
	}
	if long || n%4 == 0 {
		all["cut after"] = fault{cutAfter: true}
		if long {
			all["cut before"], all["shutdown"] = fault{cutBefore: true}, fault{answer: shutdown}
		}
	}
	return all
}

// finish makes all items end: the second fails for good.
func (s *scene) finish() error {
	err := errors.Join(s.assign(0, 1, 2), s.complete(0, 1, 2))
	return errors.Join(err, s.assign(1), s.complete(1))
}

// failFrom makes the commands behind the first n fail, but for those that are
// spared, and sets hit when one does.
func (s *scene) failFrom(n int, spared func(*command) bool, f fault, hit *bool) {
	s.proxy.set(func(p *proxy) {
		seen := 0
		p.fault = func(c *command) fault {
			if spared(c) {
				return fault{}
			}
			if seen++; seen <= n {
				return fault{}
			}
			*hit = true
			return f
		}
	})
}

// failAt makes the n-th command of a call fail, and repeats the call until it
// succeeds. It reports whether there was such a command.
func (s *scene) failAt(n int, f fault, call func() error) (hit bool) {
	s.Helper()
	s.failFrom(n, func(c *command) bool { return quiet(c) || hit }, f, &hit)
	var err error
	for range 5 {
		if err = call(); err == nil {
			break
		}
	}
	require.NoError(s, err)
	s.proxy.set(func(p *proxy) { p.fault = nil })
	return hit
}

// TestCreateThatIsCutOff makes each command of Create fail, and of its cleanup:
// the batch is there whole or not at all, and Sweep leaves nothing of it.
func TestCreateThatIsCutOff(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	const items = 1500
	for n, hit := 0, true; hit; n++ {
		for _, f := range faults(n) {
			s.id, hit = uuid.NewString(), false
			// The driver repeats what reads until the time is up.
			s.failFrom(n, func(c *command) bool { return quiet(c) || c.name == "aggregate" }, f, &hit)
			err := s.create(items)
			s.proxy.set(func(p *proxy) { p.fault = nil })
			require.Equal(t, hit, err != nil)
			s.wholeOrGone(items)
			if !hit {
				return
			}
		}
	}
}

// wholeOrGone checks that the batch has all its items, or that nothing of it
// is left after a sweep.
func (s *scene) wholeOrGone(items int) {
	s.Helper()
	_, err := s.s.Get(s.Context(), s.id)
	if err == nil {
		progress, err := s.s.Progress(s.Context(), s.id)
		require.NoError(s, err)
		require.Equal(s, items, progress[batch.Created])
		return
	}
	require.ErrorIs(s, err, batch.ErrNotFound)
	require.NoError(s, s.s.Sweep(s.Context(), s.now.Add(time.Hour), time.Minute))
	s.requireGone()
}

// TestCreateMeetsItemsOfAnother lets the server say that an item exists.
func TestCreateMeetsItemsOfAnother(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.id = uuid.NewString()
	s.proxy.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name != "insert" || c.body.Lookup("insert").StringValue() != "b7s-batch-work-items" {
				return fault{}
			}
			return fault{answer: bson.D{{Key: "ok", Value: float64(1)}, {Key: "n", Value: int32(0)},
				{Key: "writeErrors", Value: bson.A{bson.D{{Key: "index", Value: int32(0)},
					{Key: "code", Value: int32(11000)}, {Key: "errmsg", Value: "E11000 duplicate key"}}}}}}
		}
	})
	err := s.create(3)
	require.ErrorContains(t, err, "E11000")
	require.NotErrorIs(t, err, batch.ErrExists)
	s.requireGone()
}
