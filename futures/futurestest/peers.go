package futurestest

import (
	"context"

	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers"
)

// OnPeer is middleware for Use that has functions see what they see on a peer, a worker
// without access to the store: FromContext has no client, there are no steps and no actors, and Info has no
// Attempts. A function that needs one of them fails here as it would there.
func OnPeer(next workers.Call) workers.Call {
	return func(ctx context.Context, args []byte) ([]byte, error) {
		if info, ok := workers.InfoFrom(ctx); ok {
			info.Attempts = 0
			ctx = workers.WithInfo(ctx, info)
		}
		for _, missing := range [...]any{taskcontext.ClientKey{}, taskcontext.StepsKey{}, taskcontext.TurnKey{}} {
			ctx = context.WithValue(ctx, missing, nil)
		}
		return next(ctx, args)
	}
}

// Twice is middleware for Use that runs each attempt twice: as after the loss of a worker or
// a peer, what the first run returned is dropped, and what the second one returns counts. The
// steps that the first one has recorded don't run again. It finds functions that must not.
func Twice(next workers.Call) workers.Call {
	return func(ctx context.Context, args []byte) ([]byte, error) {
		_, _ = next(ctx, args) // the cluster never learns of it
		return next(ctx, args)
	}
}
