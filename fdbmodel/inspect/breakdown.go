package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
)

const (
	// breakdownFutures and breakdownTime bound a Breakdown.
	breakdownFutures, breakdownTime = 20_000, 2 * time.Second
	// breakdownGroups is how many groups it returns.
	breakdownGroups = 100
)

// Group is the futures that have something in common.
type Group struct {
	Value          string // what they have in common, empty for those that have no such thing
	Futures        int
	Bytes          int64     // of their arguments and results
	Oldest, Newest time.Time // when they were submitted
}

// Groups is what a Breakdown found.
type Groups struct {
	Groups []Group // the largest first, up to 100
	Others int     // futures in groups that are left out
	// Futures is how many futures were counted; Complete says whether these are all that match.
	Futures  int
	Complete bool
}

// breakdowns are the ways to group futures. A future is in one group for each value.
func breakdowns() []struct {
	name   string
	values func(*layout.Row) []string
} {
	text := func(of func(*layout.Row) string) func(*layout.Row) []string {
		return func(row *layout.Row) []string { return []string{of(row)} }
	}
	return []struct {
		name   string
		values func(*layout.Row) []string
	}{
		{"tag", func(row *layout.Row) []string {
			if len(row.Spec.Tags) == 0 {
				return []string{""}
			}
			return row.Spec.Tags
		}},
		{"lane", text(func(row *layout.Row) string {
			if row.Spec.Lane.IsZero() {
				return ""
			}
			return row.Spec.Lane.String()
		})},
		{"function", text(func(row *layout.Row) string { return row.Spec.Function })},
		{"queue", text(func(row *layout.Row) string { return row.Spec.Queue })},
		{"state", text(func(row *layout.Row) string { return row.State().String() })},
		{"batch", text(func(row *layout.Row) string { return row.Spec.Owner })},
		{"worker", func(row *layout.Row) []string {
			if names := workersOf(row); len(names) > 0 {
				return names
			}
			return []string{""}
		}},
	}
}

// Breakdowns returns what a Breakdown groups by.
func Breakdowns() (names []string) {
	for _, b := range breakdowns() {
		names = append(names, b.name)
	}
	return names
}

// Breakdown counts the futures that match by what they have in common, which is one of
// Breakdowns: it reads up to 20,000 of them, for up to 2 s, in the order of List. It returns the
// errors of List, and ErrBadName for an unknown way to group.
func Breakdown(ctx context.Context, c *fdbmodel.Cluster, f Filter, by string) (found Groups, err error) {
	all := breakdowns()
	at := slices.Index(Breakdowns(), by)
	if at < 0 {
		return found, fmt.Errorf("%w: by=%.40q: use one of %s", layout.ErrBadName, by,
			strings.Join(Breakdowns(), ", "))
	}
	groups := map[string]*Group{}
	var cursor []byte
	for end := c.Now().Add(breakdownTime); found.Futures < breakdownFutures && c.Now().Before(end); {
		rows, next, err := List(ctx, c, f, cursor, MaxList)
		if err != nil {
			return found, err
		}
		found.Futures += len(rows)
		for i := range rows {
			for _, value := range all[at].values(&rows[i]) {
				addTo(groups, value, &rows[i])
			}
		}
		if cursor = next; len(next) == 0 {
			found.Complete = true
			break
		}
	}
	for _, g := range groups {
		found.Groups = append(found.Groups, *g)
	}
	slices.SortFunc(found.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Futures, a.Futures), cmp.Compare(a.Value, b.Value))
	})
	if len(found.Groups) > breakdownGroups {
		for _, g := range found.Groups[breakdownGroups:] {
			found.Others += g.Futures
		}
		found.Groups = found.Groups[:breakdownGroups]
	}
	return found, nil
}

func addTo(groups map[string]*Group, value string, row *layout.Row) {
	at := time.UnixMilli(layout.AgeOf(row.ID, row.Spec).Millis)
	g := groups[value]
	if g == nil {
		g = &Group{Value: value, Oldest: at, Newest: at}
		groups[value] = g
	}
	g.Futures++
	g.Bytes += row.Spec.ArgsSize
	if row.Result != nil {
		g.Bytes += row.Result.Size
	}
	if at.Before(g.Oldest) {
		g.Oldest = at
	}
	if at.After(g.Newest) {
		g.Newest = at
	}
}
