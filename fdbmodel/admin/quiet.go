package admin

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/internal/sessions"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// SignsOfLife returns records that processes change while they live, by the names of
// those that write them.
type SignsOfLife func(context.Context) (map[string][]byte, error)

// RequireQuiet returns ErrLive if workers, sessions or the writers of other signs of
// life are alive, that is, if their heartbeats change within the dead-after time. It
// does not wait if there are none.
func RequireQuiet(ctx context.Context, c *fdbmodel.Cluster, others ...SignsOfLife) error {
	return requireQuiet(ctx, c, c.Config().DeadAfter, others)
}

func requireQuiet(ctx context.Context, c *fdbmodel.Cluster, deadAfter time.Duration, others []SignsOfLife) error {
	before, err := signsOfLife(ctx, c, others)
	if err != nil || len(before) == 0 {
		return err
	}
	timer := c.Clock().At(c.Now().Add(deadAfter))
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
		return ctx.Err()
	}
	after, err := signsOfLife(ctx, c, others)
	if err != nil {
		return err
	}
	var living []string
	for name, sign := range after {
		if !bytes.Equal(before[name], sign) {
			living = append(living, name)
		}
	}
	if len(living) == 0 {
		return nil
	}
	slices.Sort(living)
	return fmt.Errorf("cluster %q: %w by %s: stop them first", c.Name(), fdbmodel.ErrLive, nameSome(living))
}

func nameSome(names []string) string {
	const some = 5
	if len(names) > some {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:some], ", "), len(names)-some)
	}
	return strings.Join(names, ", ")
}

// signsOfLife returns the heartbeats of workers, sessions and others that may be alive, also those that can't be read.
// Those of an earlier opening of a store that one process opens can't be.
func signsOfLife(ctx context.Context, c *fdbmodel.Cluster, others []SignsOfLife) (map[string][]byte, error) {
	members, err := c.Workers(ctx)
	if err != nil {
		return nil, err
	}
	signs, opening := map[string][]byte{}, kv.TraitsOf(c.Database()).Opening
	for i := range members {
		if m := &members[i]; m.Alive && (opening == "" || m.Opening == opening || m.Unreadable != "") {
			signs["worker "+string(m.ID)] = m.Beat
		}
	}
	for _, other := range others {
		more, err := other(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(signs, more)
	}
	clients, err := sessions.All(ctx, c)
	for id, sign := range clients {
		var record layout.SessionRecord
		readable := layout.Decode(c.Keys().Session(id), sign, &record) == nil
		if sign != nil && (opening == "" || record.Opening == opening || !readable) {
			signs["session "+string(id)] = sign
		}
	}
	return signs, err
}
