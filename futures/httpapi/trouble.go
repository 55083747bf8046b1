package httpapi

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/wording"
)

// Trouble is something to look at.
type Trouble struct {
	Severity string `json:"severity" enum:"bad,warn" doc:"Bad, or warn for what may be meant to be so"`
	Text     string `json:"text"`
	See      string `json:"see" doc:"The path of this API that shows more"`
}

// Severities of troubles.
const (
	Bad      = "bad"
	Warn     = "warn"
	maxWrong = 20
	maxTold  = 300 // bytes of an error
)

// troubles are what is wrong, as it is found.
type troubles []Trouble

// add adds a trouble. see is a path below /api/v1, with its values in the query.
func (t *troubles) add(severity, see string, query url.Values, format string, args ...any) {
	see = "/api/v1/" + see
	if len(query) > 0 {
		see += "?" + query.Encode()
	}
	*t = append(*t, Trouble{severity, fmt.Sprintf(format, args...), see})
}

// wrong is what an operator should look at, what is bad first.
func (o *Overview) wrong() []Trouble {
	all := troubles{}
	if o.unwritable != nil {
		all.add(Bad, "workers", nil, "the store can't be written: %s",
			strings.TrimPrefix(o.unwritable.Error(), kv.ErrReadOnly.Error()+": "))
	}
	ready := url.Values{"state": {"ready"}}
	switch wait := wording.Count(o.Total.Ready, "waiting future"); {
	case o.Total.Ready > 0 && o.Alive == 0:
		all.add(Bad, "workers", nil, "%s, and no worker is alive", wait)
	case o.Total.Ready > 0 && o.Free > 0 && o.Total.Claimed == 0:
		all.add(Warn, "futures", ready, "%s, and %s: futura explain says why", wait,
			wording.Count(o.Free, "free slot"))
	}
	if o.Dead > 0 {
		all.add(Bad, "workers", nil, "%s died; what they held is being taken back", wording.Count(o.Dead, "worker"))
	}
	for i := range o.Functions {
		f := &o.Functions[i]
		if ran := f.Succeeded + f.FailedAttempts; f.FailedAttempts > 0 && f.FailedAttempts*10 >= ran {
			query := url.Values{"state": {"failed"}, "function": {f.Function}, "queue": {f.Queue}}
			if f.Function == otherQueues { // no list has this name
				query = url.Values{"state": {"failed"}}
			}
			all.add(Bad, "futures", query, "%s in the queue %s fails: %d of %d attempts in the last hour",
				wording.Function(f.Function), f.Queue, f.FailedAttempts, ran)
		}
	}
	for i := range o.logs {
		o.logs[i].wrong(&all)
	}
	for i := range o.Workers {
		if w := &o.Workers[i]; w.State() == workerDraining {
			all.add(Warn, "workers", nil, "worker %s stops, and takes no more futures", w.Called())
		}
	}
	for _, p := range o.pauses {
		since := "is paused"
		if !p.At.IsZero() { // the record can be read
			since = "was paused " + wording.Brief(o.At.Sub(p.At)) + " ago"
		}
		all.add(Warn, "pauses", nil, "the %s %s %s%s", p.What, wording.Function(p.Name), since, wording.Because(p.Reason))
	}
	if o.badKinds != nil {
		all.add(Bad, "lanes", nil, "a kind of lanes can't be read: %s", layout.Shorten(o.badKinds.Error(), maxTold))
	}
	for _, k := range o.kinds {
		if k.Paused {
			all.add(Warn, "lanes/"+url.PathEscape(k.Name), nil, "lanes of %s are paused", k.Name)
		}
	}
	slices.SortStableFunc(all, func(a, b Trouble) int { return cmp.Compare(a.Severity, b.Severity) })
	return all[:min(len(all), maxWrong)]
}

func (l *JobLog) wrong(all *troubles) {
	for i := range l.Consumers {
		c := &l.Consumers[i]
		severity, what := Bad, fmt.Sprintf("is held by job %d%s", c.Failing, wording.Because(c.Error))
		if c.Failing == 0 && c.Parked > 0 {
			severity, what = Warn, "has parked "+wording.Count(c.Parked, "job")
		} else if c.Failing == 0 {
			continue
		}
		all.add(severity, "jobs/"+url.PathEscape(l.Queue), nil, "consumer %s of the job log %s %s", c.Name, l.Queue, what)
	}
}
