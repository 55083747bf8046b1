package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/metering"
	"github.com/futura-run/futura/futures"
)

// UsageDays returns the first and the last day of a view of usage. An empty last day is
// that of now, and an empty first one is 29 days earlier.
func UsageDays(from, to string, now time.Time) (first, last time.Time, err error) {
	if last, err = usageDay("to", to, now); err != nil {
		return first, last, err
	}
	if first, err = usageDay("from", from, last.AddDate(0, 0, 1-usageDays)); err != nil {
		return first, last, err
	}
	if days := last.Sub(first).Hours() / 24; days < 0 || days >= futures.MaxUsageDays {
		return first, last, fmt.Errorf("from %s to %s: the last day is the first one or up to %d days later",
			layout.Day(first), layout.Day(last), futures.MaxUsageDays-1)
	}
	return first, last, nil
}

func usageDay(name, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		text = layout.Day(otherwise)
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, fmt.Errorf("%s=%.40q: use a day of UTC such as 2026-01-31", name, text)
	}
	return day, nil
}

// ReadUsage returns what was used from one day to another, by "day" or by "worker". It calls
// more before each row that it keeps, and returns its error.
func ReadUsage(ctx context.Context, c *futures.Client, from, to time.Time, by string, more func() error,
) (*UsageView, error) {
	sums := map[UsageRow]*metering.Metered{}
	var total metering.Metered
	err := c.Usage(ctx, from, to, func(u *futures.Use) error {
		row := UsageRow{Day: u.Day}
		if by == "worker" {
			row = UsageRow{Worker: u.Name, Kind: u.Kind}
		}
		if sums[row] == nil {
			if err := more(); err != nil {
				return err
			}
			sums[row] = &metering.Metered{}
		}
		sums[row].Add(&u.Metered)
		total.Add(&u.Metered)
		return nil
	})
	view := &UsageView{From: layout.Day(from), To: layout.Day(to), By: by, Rows: []UsageRow{}, Total: usedOf(&total)}
	switch {
	case layout.IsUnreadable(err):
		view.Incomplete = err.Error()
	case err != nil:
		return nil, err
	}
	for row, sum := range sums {
		row.Used = usedOf(sum)
		view.Rows = append(view.Rows, row)
	}
	slices.SortFunc(view.Rows, func(a, b UsageRow) int {
		return strings.Compare(a.Day+a.Kind+"\x00"+a.Worker, b.Day+b.Kind+"\x00"+b.Worker)
	})
	return view, nil
}

func usedOf(m *metering.Metered) Used {
	return Used{
		Items: m.Items, Failed: m.Failed, RunMS: m.RunTime.Milliseconds(), CPUMS: m.CPU.Milliseconds(), BytesIn: m.In,
		BytesOut: m.Out, MemoryMax: m.Memory,
	}
}
