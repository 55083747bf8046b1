package remote

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
)

// askedStore is a store that says that a value is read, before it is.
type askedStore struct {
	kv.Database
	asked chan struct{}
}

type askedTx struct {
	kv.Tx
	asked chan struct{}
}

func (s askedStore) Begin(o kv.Options) kv.Tx { return askedTx{s.Database.Begin(o), s.asked} }

func (s askedStore) Traits() kv.Traits { return kv.TraitsOf(s.Database) }

func (t askedTx) Get(key []byte) kv.Pending[[]byte] {
	t.asked <- struct{}{}
	return t.Tx.Get(key)
}

// TestAReadThatWaitsForItsTurnHoldsNothingUp has the transaction that another one of its connection waits for commit
// meanwhile: the other one then reads what it wrote.
func TestAReadThatWaitsForItsTurnHoldsNothingUp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, _ := serveMemory(t, ServerOptions{})
	asked := make(chan struct{}, 9)
	at, _ := serve(t, askedStore{store, asked}, ServerOptions{})
	db := dial(t, at)
	begin := func() kv.Tx {
		tx := db.Begin(kv.Options{Tag: "turns", Turns: true})
		t.Cleanup(tx.Cancel)
		return tx
	}
	read := func(tx kv.Tx) string {
		value, err := tx.Get([]byte("x")).Wait(ctx)
		require.NoError(t, err)
		return string(value)
	}
	write := func(tx kv.Tx, value string) error {
		tx.Set([]byte("x"), []byte(value))
		_, err := tx.Commit(ctx)
		return err
	}
	first, second := begin(), begin()
	read(first)
	read(second)
	require.NoError(t, write(first, "1"))
	require.ErrorIs(t, write(second, "2"), kv.ErrConflict)

	first, second = begin(), begin()
	read(first)
	for len(asked) > 0 {
		<-asked
	}
	seen := make(chan string, 1)
	go func() {
		value, _ := second.Get([]byte("x")).Wait(ctx)
		seen <- string(value)
	}()
	<-asked
	require.NoError(t, write(first, "3"))
	require.Equal(t, "3", <-seen)
}

// heldCommits is a store whose commits wait.
type heldCommits struct {
	kv.Database
	begun, goOn chan struct{}
}

type heldTx struct {
	kv.Tx
	store *heldCommits
}

func (s *heldCommits) Begin(o kv.Options) kv.Tx { return &heldTx{s.Database.Begin(o), s} }

func (s *heldCommits) Traits() kv.Traits { return kv.TraitsOf(s.Database) }

func (t *heldTx) Commit(ctx context.Context) (kv.Committed, error) {
	t.store.begun <- struct{}{}
	<-t.store.goOn
	return t.Tx.Commit(ctx)
}

// TestReadsEndBeforeTheirCommit has more transactions commit than may read at a time, each with a read that was not
// waited for: others read meanwhile, and the answers of those come with their commits.
func TestReadsEndBeforeTheirCommit(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"few bytes": 10, "many": keptAnswers} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			store, _ := serveMemory(t, ServerOptions{})
			held := &heldCommits{store, make(chan struct{}), make(chan struct{})}
			at, _ := serve(t, held, ServerOptions{})
			db := dial(t, at)
			old := make([]byte, size)
			_, err := kv.Transact(ctx, store, kv.Retry{}, func(tx kv.Attempt) error {
				tx.Set([]byte("x"), old)
				return nil
			})
			require.NoError(t, err)
			type commit struct {
				value kv.Pending[[]byte]
				err   chan error
			}
			var commits []commit
			for range maxReads + 1 {
				tx := db.Begin(kv.Options{})
				c := commit{tx.Snapshot().Get([]byte("x")), make(chan error, 1)}
				tx.Set([]byte("x"), nil)
				go func() {
					_, err := tx.Commit(ctx)
					c.err <- err
				}()
				commits = append(commits, c)
				<-held.begun
			}
			require.Equal(t, string(old), get(t, db, "x"))
			close(held.goOn)
			for _, c := range commits {
				require.NoError(t, <-c.err)
				value, err := c.value.Wait(ctx)
				require.NoError(t, err)
				require.Equal(t, old, value)
			}
		})
	}
}

// TestAReadThatTakesLongHoldsNothingUp has another transaction of the connection read and commit meanwhile, and the
// client hear signs of life.
func TestAReadThatTakesLongHoldsNothingUp(t *testing.T) {
	t.Parallel()
	store, _ := serveMemory(t, ServerOptions{})
	asked := make(chan struct{})
	at, _ := serve(t, askedStore{store, asked}, ServerOptions{})
	db := dial(t, at)
	read := make(chan error, 1)
	for range maxReads - 1 {
		go func() {
			tx := db.Begin(kv.Options{})
			defer tx.Cancel()
			_, err := tx.Get([]byte("x")).Wait(t.Context())
			read <- err
		}()
	}
	for range 3 {
		_, err := kv.Transact(t.Context(), db, kv.Retry{}, func(tx kv.Attempt) error {
			tx.Set([]byte("y"), nil)
			_, err := tx.GetRange(kv.Prefix([]byte("y")), kv.RangeOptions{Limit: 1}).Wait(t.Context())
			return err
		})
		require.NoError(t, err)
	}
	for range maxReads - 1 {
		<-asked
		require.NoError(t, <-read)
	}
}

// TestATransactionEndsBeforeItsQuestionIsSent as one that is cancelled meanwhile does.
func TestATransactionEndsBeforeItsQuestionIsSent(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{})
	tx := dial(t, at).Begin(kv.Options{}).(*tx)
	q, err := tx.talk.ask(false)
	require.NoError(t, err)
	tx.stage = stageOver
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tx.await(ctx, q), context.Canceled)
}

// TestAWatchThatWasNeverSentIsForgotten ends a transaction before its server has heard of its watch.
func TestAWatchThatWasNeverSentIsForgotten(t *testing.T) {
	t.Parallel()
	_, at := serveMemory(t, ServerOptions{})
	tx := dial(t, at).Begin(kv.Options{}).(*tx)
	_, err := tx.Get([]byte("key")).Wait(t.Context())
	require.NoError(t, err)
	watch := tx.Watch([]byte("key"))
	tx.Cancel()
	<-watch.Done()
	require.ErrorIs(t, watch.Err(), kv.ErrCancelled)
	tx.link.mu.Lock()
	defer tx.link.mu.Unlock()
	require.Empty(t, tx.link.watches.at)
}

// lateCommits is a store whose commits take place, and are not answered.
type lateCommits struct {
	kv.Database
	watch chan kv.Watch
	made  chan struct{}
}

type lateTx struct {
	kv.Tx
	store *lateCommits
}

func (s *lateCommits) Begin(o kv.Options) kv.Tx { return &lateTx{s.Database.Begin(o), s} }

func (t *lateTx) Watch(key []byte) kv.Watch {
	w := t.Tx.Watch(key)
	t.store.watch <- w
	return w
}

func (t *lateTx) Commit(ctx context.Context) (kv.Committed, error) {
	done, err := t.Tx.Commit(ctx)
	close(t.store.made)
	<-ctx.Done()
	return done, err
}

// TestAWatchOfACommitInDoubtEnds gives a commit up that has taken place: its watch does not stay with the server.
func TestAWatchOfACommitInDoubtEnds(t *testing.T) {
	t.Parallel()
	store, _ := serveMemory(t, ServerOptions{})
	late := &lateCommits{store, make(chan kv.Watch, 1), make(chan struct{})}
	at, _ := serve(t, late, ServerOptions{})
	tx := dial(t, at).Begin(kv.Options{})
	tx.Watch([]byte("key"))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-late.made
		cancel()
	}()
	_, err := tx.Commit(ctx)
	require.ErrorIs(t, err, kv.ErrUnknownResult)
	select {
	case <-(<-late.watch).Done():
	case <-time.After(10 * time.Second):
		require.Fail(t, "the server keeps a watch that nobody waits for")
	}
}

// heldReads is a store whose reads of x wait, and whose transactions are cancelled after their reads.
type heldReads struct {
	kv.Database
	begun, goOn chan struct{}
}

type heldReadsTx struct {
	kv.Tx
	in   heldReads
	busy *sync.Mutex
}

func (s heldReads) Begin(o kv.Options) kv.Tx {
	return heldReadsTx{s.Database.Begin(o), s, new(sync.Mutex)}
}

func (t heldReadsTx) Get(key []byte) kv.Pending[[]byte] {
	t.busy.Lock()
	defer t.busy.Unlock()
	if string(key) == "x" {
		t.in.begun <- struct{}{}
		<-t.in.goOn
	}
	return t.Tx.Get(key)
}

func (t heldReadsTx) Cancel() {
	t.busy.Lock()
	defer t.busy.Unlock()
	t.Tx.Cancel()
}

// TestAReadThatIsGivenUpHoldsNothingUp has another transaction of the connection read while the disk hangs.
func TestAReadThatIsGivenUpHoldsNothingUp(t *testing.T) {
	t.Parallel()
	store, _ := serveMemory(t, ServerOptions{})
	held := heldReads{store, make(chan struct{}), make(chan struct{})}
	at, _ := serve(t, held, ServerOptions{})
	db := dial(t, at)
	defer close(held.goOn)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	brief, giveUp := context.WithCancel(ctx)
	tx, ended := db.Begin(kv.Options{}), make(chan error)
	go func() {
		_, err := tx.Get([]byte("x")).Wait(brief)
		tx.Cancel()
		ended <- err
	}()
	<-held.begun
	giveUp()
	require.ErrorIs(t, <-ended, context.Canceled)
	other := db.Begin(kv.Options{})
	defer other.Cancel()
	_, err := other.Get([]byte("y")).Wait(ctx)
	require.NoError(t, err)
}
