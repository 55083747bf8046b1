package stack

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/bubble"
)

// TestWaitsEndWithTheirToken has requests wait whose token expires, is revoked, or stays.
func TestWaitsEndWithTheirToken(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		brief, gone, stays := NewSecret(), NewSecret(), NewSecret()
		tokens := &Tokens{}
		for _, secret := range []string{brief, gone, stays} {
			tokens.Add(secret[:8], secret, Read)
		}
		tokens.own[0].Expires = time.Now().Add(90 * time.Second)
		s := &Stack{options: Options{Tokens: tokens}}
		wait := func(secret string) context.Context {
			token, known := tokens.Find(secret)
			require.True(t, known)
			q := &request{secret: secret, bearer: token}
			ctx, cancel := s.Waiting(context.WithValue(t.Context(), requestKey{}, q), time.Hour)
			t.Cleanup(cancel)
			return ctx
		}
		short, revoked, whole := wait(brief), wait(gone), wait(stays)
		none, cancel := s.Waiting(t.Context(), time.Hour)
		defer cancel()
		sleep := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		sleep(time.Minute)
		require.NoError(t, short.Err())
		require.NoError(t, revoked.Err())
		tokens.mu.Lock()
		tokens.own = append(tokens.own[:1:1], tokens.own[2:]...)
		tokens.mu.Unlock()
		sleep(2 * time.Second)
		require.Error(t, revoked.Err())
		require.NoError(t, short.Err())
		sleep(30 * time.Second)
		require.Error(t, short.Err())
		sleep(50 * time.Minute)
		require.NoError(t, whole.Err())
		require.NoError(t, none.Err())
	})
}
