package attack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/attack"
)

// What holders of a token may wait while strangers attack, on two quiet processors.
const (
	strangersMedian = 50 * time.Millisecond
	strangersWorst  = time.Second
	// strangersEnd is when connections that are not read have ended: after 30 s, and what a busy machine adds.
	strangersEnd = time.Minute
	// strangersQueue is the most that the kernel holds of answers to one connection without a token.
	strangersQueue = 32 << 10
)

// strangersAttacks need no token.
var strangersAttacks = []struct {
	name   string
	strike attack.Attack
	// unread is set for connections that hold answers.
	unread bool
}{
	{"documents", attack.Unread("/openapi.json"), true},
	{"pages", attack.Unread("/docs"), true},
	{"health", attack.Unread("/api/v1/health"), true},
	{"refusals", attack.Unread("/metrics"), true},
	{"slow headers", attack.SlowHeaders, false},
}

// TestStrangersDoNotSlowHolders measures what a holder of a token waits while strangers hold connections, and when
// those have ended.
func TestStrangersDoNotSlowHolders(t *testing.T) {
	if !long() {
		t.Skip("it measures times: set FUTURA_LONG=1")
	}
	const rounds, files = 20, 4096
	for _, a := range strangersAttacks {
		for _, size := range []int{100, 1000} {
			t.Run(fmt.Sprint(size, " ", a.name), func(t *testing.T) {
				s := newSiteOf(t, files)
				target := &attack.Target{Address: strings.TrimPrefix(s.process.Endpoint.URL, "http://"), From: "127.0.0.2"}
				s.forget()
				undo, err := a.strike(t.Context(), target, size)
				defer undo()
				require.NoError(t, err)
				struck := time.Now()
				s.bystander.Go(rounds)
				median := s.bystander.Median()
				worst, failed := s.bystander.Take()
				queues, err := attack.SendQueuesOf(target.Address)
				require.NoError(t, err)
				t.Logf("the bystander waits %v in the median, %v at worst for %s; %d connections, %d kB in their queues, %d "+
					"at most in one; %d lines of log", median, worst.Time, worst.Step, queues.Connections, queues.Bytes>>10,
					queues.Most, s.process.Log.Lines())
				assert.NoError(t, failed)
				assert.LessOrEqual(t, median, strangersMedian)
				assert.LessOrEqual(t, worst.Time, strangersWorst)
				if a.unread {
					assert.LessOrEqual(t, queues.Most, int64(strangersQueue))
					ended := endOf(t, target.Address, struck)
					t.Logf("after %v the connections have ended", ended)
					assert.Less(t, ended, strangersEnd)
				}
			})
		}
	}
}

// endOf waits until few connections hold unread answers, and returns when that is, or when it gives up.
func endOf(t *testing.T, address string, since time.Time) time.Duration {
	t.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for range tick.C {
		q, err := attack.SendQueuesOf(address)
		require.NoError(t, err)
		if ended := time.Since(since); q.Bytes < strangersQueue || ended > 2*strangersEnd {
			return ended
		}
	}
	return 0
}
