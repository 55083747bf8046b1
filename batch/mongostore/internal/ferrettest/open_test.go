package ferrettest

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
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

// client is a connection of the test's own.
func client(t *testing.T, p *proxy) *mongo.Database {
	c, err := mongo.Connect(options.Client().ApplyURI(p.uri()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Disconnect(context.Background())) })
	return c.Database(mongostore.DefaultDatabase)
}

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	var log bytes.Buffer
	for range 3 {
		s, err := patientOpen(t.Context(), mongostore.Options{
			URI: p.uri(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		require.NoError(t, err)
		name, durable := s.Describe()
		require.True(t, durable)
		require.Contains(t, name, strings.Trim(p.uri(), "/"))
		require.NoError(t, s.Close(t.Context()))
	}
	names, err := client(t, p).ListCollectionNames(t.Context(), bson.D{})
	require.NoError(t, err)
	require.ElementsMatch(t, mongostore.Collections(), names)
	require.Equal(t, 3, strings.Count(log.String(), "does not check documents"))
}

// TestOpenWithoutValidators sends the validators to a server that has none.
func TestOpenWithoutValidators(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	p.set(func(p *proxy) { p.validators = true })
	var log bytes.Buffer
	s, err := patientOpen(t.Context(), mongostore.Options{
		URI: p.uri(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(log.String(), "does not check documents"))
	require.NoError(t, s.Close(t.Context()))
}

// TestOpenWaitsForIndexes has a server told that it may take long to index what it has, whatever a call takes at most.
func TestOpenWaitsForIndexes(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	var mu sync.Mutex
	var allowed []time.Duration
	p.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "createIndexes" {
				mu.Lock()
				defer mu.Unlock()
				most, _ := c.body.Lookup("maxTimeMS").AsInt64OK()
				allowed = append(allowed, time.Duration(most)*time.Millisecond)
			}
			return fault{}
		}
	})
	open(t, p.uri())
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, allowed)
	for _, most := range allowed {
		require.Greater(t, most, time.Hour)
	}
}

// TestOpenSendsTheSchemas checks what a server with validators would be given.
func TestOpenSendsTheSchemas(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	sent := map[string]string{}
	p.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "create" {
				sent[c.body.Lookup("create").StringValue()] = c.body.Lookup("validator", "$jsonSchema").String()
			}
			return fault{}
		}
	})
	open(t, p.uri())
	require.Len(t, sent, len(mongostore.Collections()))
	for name, got := range sent {
		want, err := mongostore.Schema(name)
		require.NoError(t, err)
		require.JSONEq(t, relaxed(t, string(want)), relaxed(t, got))
	}
}

func relaxed(t *testing.T, text string) string {
	var document bson.D
	require.NoError(t, bson.UnmarshalExtJSON([]byte(text), false, &document))
	plain, err := bson.MarshalExtJSON(document, false, false)
	require.NoError(t, err)
	return string(plain)
}

func TestOpenRefusesForeignCollections(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	capped := options.CreateCollection().SetCapped(true).SetSizeInBytes(1 << 20)
	require.NoError(t, client(t, p).CreateCollection(t.Context(), "b7s-batch-chunks", capped))
	_, err := patientOpen(t.Context(), mongostore.Options{URI: p.uri()})
	require.ErrorIs(t, err, mongostore.ErrForeignSchema)
	require.ErrorContains(t, err, "b7s-batch-chunks")
	require.ErrorContains(t, err, "capped")
}

// TestOpenRefusesForeignIndexes lets the server say that other indexes, or
// documents that break ours, are there.
func TestOpenRefusesForeignIndexes(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	for code, name := range map[int32]string{
		85: "IndexOptionsConflict", 86: "IndexKeySpecsConflict", 11000: "DuplicateKey",
	} {
		p.set(func(p *proxy) {
			p.fault = func(c *command) fault {
				if c.name == "createIndexes" {
					return refusal(code, name)
				}
				return fault{}
			}
		})
		_, err := patientOpen(t.Context(), mongostore.Options{URI: p.uri()})
		require.ErrorIs(t, err, mongostore.ErrForeignSchema)
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "b7s-batches")
	}
}

// TestOpenComparesIndexes has an index of another direction, which lies beside ours, and then one that lets no two
// chunks of a batch be in one state.
func TestOpenComparesIndexes(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	chunks := client(t, p).Collection("b7s-batch-chunks").Indexes()
	made := func(direction int32, name string) {
		_, err := chunks.CreateOne(t.Context(), mongo.IndexModel{
			Keys:    bson.D{{Key: "batch_id", Value: direction}, {Key: "status", Value: direction}},
			Options: options.Index().SetUnique(true).SetName(name),
		})
		require.NoError(t, err)
	}
	made(-1, "down")
	s, err := patientOpen(t.Context(), mongostore.Options{URI: p.uri()})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	found, err := chunks.ListSpecifications(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 3, "that of keys, the other and ours")
	require.NoError(t, chunks.DropOne(t.Context(), "batch_id_1_status_1"))
	made(1, "up")
	_, err = patientOpen(t.Context(), mongostore.Options{URI: p.uri()})
	require.ErrorIs(t, err, mongostore.ErrForeignSchema)
	require.ErrorContains(t, err, "index up of batch_id, status that is unique, and has to be not unique")
}

// TestOpenTakesCollectionsThatExist lets the server say so, as one does that
// compares their options otherwise.
func TestOpenTakesCollectionsThatExist(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	open(t, p.uri())
	p.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "create" {
				return refusal(48, "NamespaceExists")
			}
			return fault{}
		}
	})
	open(t, p.uri())
}

// refusal is the answer of a server that refuses.
func refusal(code int32, name string) fault {
	return fault{answer: bson.D{{Key: "ok", Value: float64(0)}, {Key: "code", Value: code},
		{Key: "codeName", Value: name}, {Key: "errmsg", Value: name}}}
}

func TestOpenTellsOfWrongCredentials(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	host := strings.TrimPrefix(p.uri(), "mongodb://")
	p.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "saslStart" {
				return refusal(18, "AuthenticationFailed")
			}
			return fault{}
		}
	})
	began := time.Now()
	_, err := patientOpen(t.Context(), mongostore.Options{
		URI: "mongodb://me:hunter2@" + host + "?authMechanism=PLAIN",
	})
	require.ErrorIs(t, err, mongostore.ErrCredentials)
	require.NotContains(t, err.Error(), "hunter2")
	_, err = patientOpen(t.Context(), mongostore.Options{
		URI: "mongodb://me:hunter2@" + host + "?authMechanism=SCRAM-SHA-256",
	})
	require.ErrorIs(t, err, mongostore.ErrCredentials)
	require.Less(t, time.Since(began), time.Minute)

	// Someone who may connect and do nothing.
	p.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "create" {
				return refusal(13, "Unauthorized")
			}
			return fault{}
		}
	})
	_, err = patientOpen(t.Context(), mongostore.Options{URI: p.uri()})
	require.ErrorIs(t, err, mongostore.ErrCredentials)
}

// TestServerThatGoesAway asks a server that does not answer any more.
func TestServerThatGoesAway(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	s := open(t, p.uri()+"?serverSelectionTimeoutMS=300")
	p.set(func(p *proxy) { p.fault = func(*command) fault { return fault{cutBefore: true} } })
	_, err := s.Get(t.Context(), uuid.NewString())
	require.ErrorIs(t, err, batch.ErrUnavailable)
	b := &batch.Batch{ID: uuid.NewString(), MaxAttempts: 1}
	require.ErrorIs(t, s.Create(t.Context(), b, [][]string{{}}), batch.ErrUnavailable)
	p.set(func(p *proxy) { p.fault = nil })
	// The driver takes a while to see that the server is back.
	require.Eventually(t, func() bool { return s.Create(t.Context(), b, [][]string{{}}) == nil },
		time.Minute, 10*time.Millisecond)
}

// TestOpenIsBounded connects to a server that accepts and says nothing.
func TestOpenIsBounded(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	release := make(chan struct{})
	p.set(func(p *proxy) { p.hold = func(*command) <-chan struct{} { return release } })
	_, err := mongostore.Open(t.Context(), mongostore.Options{URI: p.uri()})
	p.set(func(p *proxy) { p.hold = nil })
	close(release)
	require.ErrorIs(t, err, mongostore.ErrUnreachable)
}

// TestLargeOutputs stores more than a document can have.
func TestLargeOutputs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.begin(2)
	require.NoError(t, s.assign(0, 1))
	want := batch.Result{Stdout: strings.Repeat("0123456789abcde\n", 1<<20) + "end", Stderr: "\xff" + uuid.NewString()}
	counted, err := s.s.Complete(t.Context(), s.id, s.chunk().ID, []batch.Completion{
		{Index: 0, Result: want}, {Index: 1, Result: batch.Result{Stderr: want.Stdout[:5<<20], ExitCode: 1}},
	})
	require.NoError(t, err)
	require.Equal(t, []bool{true, true}, counted)
	items := s.require(batch.InProgress, batch.Done, batch.Failed)
	require.Nil(t, items[0].Result, "a page has no room for it")
	require.GreaterOrEqual(t, items[0].LeftOut, int64(len(want.Stdout)))
	whole, err := s.s.Result(t.Context(), s.id, 0)
	require.NoError(t, err)
	require.True(t, want == *whole)
	require.True(t, want.Stdout[:5<<20] == items[1].Result.Stderr)
	require.Empty(t, items[1].Result.Stdout)
	require.NoError(t, s.cancel())
	require.NoError(t, s.remove())
	s.requireGone()

	large := &batch.Batch{ID: uuid.NewString(), MaxAttempts: 1, CreatedAt: s.now}
	large.Template.Config.Stdin = want.Stdout
	require.ErrorIs(t, s.s.Create(t.Context(), large, [][]string{{}}), batch.ErrBadBatch)
}

// TestItemsAreInsertedInParts creates a batch of more items than are sent at once.
func TestItemsAreInsertedInParts(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var parts []int
	s.proxy.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "insert" && c.body.Lookup("insert").StringValue() == itemsOf {
				for _, section := range c.sections {
					parts = append(parts, len(section.documents))
				}
			}
			return fault{}
		}
	})
	s.begin(2500)
	s.proxy.set(func(*proxy) { require.Equal(t, []int{1000, 1000, 500}, parts) })
	b, err := s.s.Get(t.Context(), s.id)
	require.NoError(t, err)
	require.Equal(t, 2500, b.Items)
}

// TestOpenUsesTheNamedDatabase finds the collections where the options say.
func TestOpenUsesTheNamedDatabase(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	s, err := patientOpen(t.Context(), mongostore.Options{URI: p.uri(), Database: "mine"})
	require.NoError(t, err)
	require.NoError(t, s.Close(t.Context()))
	names, err := client(t, p).Client().ListDatabaseNames(t.Context(), bson.D{})
	require.NoError(t, err)
	require.Contains(t, names, "mine")
	require.NotContains(t, names, mongostore.DefaultDatabase)
}

// TestOpenPingsFirst sees a ping before the first change.
func TestOpenPingsFirst(t *testing.T) {
	t.Parallel()
	p := startServer(t)
	var sent []string
	p.set(func(p *proxy) {
		p.fault = func(c *command) fault {
			if c.name == "ping" || c.name == "create" {
				sent = append(sent, c.name)
			}
			return fault{}
		}
	})
	open(t, p.uri())
	p.set(func(*proxy) { require.Equal(t, []string{"ping", "create"}, sent[:2]) })
}
