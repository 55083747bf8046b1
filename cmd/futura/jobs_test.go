package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/jobqueue"
	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/joblog"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/kv/embedded"
	"github.com/futura-run/futura/fdbmodel/kv/kvopen"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

// consumeJobs runs a stage of a shell's store until it has come to an index. Jobs
// that are "bad" fail.
func consumeJobs(s *shell, queue string, to uint64) {
	ctx := context.Background()
	db, err := kvopen.Open(ctx, s.store, kvopen.Options{})
	require.NoError(s.t, err)
	cluster, err := fdbmodel.Open(ctx, db, "default", fdbmodel.Options{})
	require.NoError(s.t, err)
	log, err := jobqueue.NewLog(cluster, queue, jobqueue.LogOptions[string]{Keep: 2})
	require.NoError(s.t, err)
	over := make(chan struct{})
	stage, err := jobqueue.NewStage(cluster, log, "price",
		func(_ context.Context, job jobqueue.Job[string], _ *jobqueue.Output) error {
			if strings.HasPrefix(job.Value, "bad") {
				return jobqueue.Permanent(errors.New("it is bad"))
			}
			return nil
		}, jobqueue.StageOptions{About: "here", Options: jobqueue.Options{OnFailure: jobqueue.Park,
			OnAdvance: func(processed uint64) {
				if processed == to {
					close(over)
				}
			}}})
	require.NoError(s.t, err)
	require.NoError(s.t, stage.Start())
	<-over
	require.NoError(s.t, stage.Stop(ctx))
	require.NoError(s.t, log.Trim(ctx))
	log.Close()
	require.NoError(s.t, db.Close())
}

func TestJobsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	out, _ := s.run(exitOK, "one\nbad two\nthree\nbad four\n", "jobs", "append", "orders")
	require.Equal(t, "appended 4 jobs; 0 were there\n", out)
	require.Regexp(t, `(?m)^orders +1-4`, s.ok("jobs", "list"))
	consumeJobs(s, "orders", 4)
	require.Regexp(t, `(?m)^orders +3-4 +price +4 +0 +2`, s.ok("jobs", "list", "orders"))
	require.Equal(t, s.ok("jobs", "list", "orders"), s.ok("jobs", "show", "orders"))
	require.Equal(t, "appended 2 jobs; 0 were there", strings.TrimSpace(s.ok("jobs", "append", "given", "a", "b\nc")))
	require.Regexp(t, `(?m)^given +1-2`, s.ok("jobs", "show", "given"))
	_, said := s.run(exitUsage, "", "jobs", "append", "given", "d", "--producer", "p")
	require.Contains(t, said, "standard input")
	s.ok("jobs", "remove", "given")
	logs := listed[httpapi.JobLog](t, "logs", s.ok("jobs", "list", "--json"))
	require.Len(t, logs, 1)
	require.EqualValues(t, []any{int64(4), int64(4), 2}, []any{logs[0].Last, logs[0].Consumers[0].Processed,
		logs[0].Consumers[0].Parked})
	read := s.ok("jobs", "read", "orders")
	require.Regexp(t, `(?m)^3 .*Z +three$`, read)
	require.Regexp(t, `(?m)^4 .*Z +bad four$`, read)
	require.NotContains(t, s.ok("jobs", "read", "orders", "--limit", "1"), "four")
	parked := s.ok("jobs", "parked", "orders", "price")
	require.Regexp(t, `(?m)^2 +1 attempt +\S+Z +it is bad$`, parked)
	require.Equal(t, "retrying 1 job", s.ok("jobs", "retry", "orders", "price", "2"))
	require.Contains(t, s.ok("jobs", "parked", "orders", "price", "--limit", "1"), "to be tried again")
	require.Contains(t, s.ok("jobs", "parked", "orders", "price", "--after", "2", "--json"), `"value": "bad four"`)
	s.run(exitNotFound, "", "jobs", "drop", "orders", "price", "3", "4")
	require.Equal(t, "dropped 1 job", s.ok("jobs", "drop", "orders", "price", "--all"))
	require.Empty(t, listed[jobForm](t, "jobs", s.ok("jobs", "parked", "orders", "price", "--json")))
	require.Contains(t, s.ok("check"), "0 problems")
	require.Equal(t, "removed orders price", s.ok("jobs", "remove", "orders", "--consumer", "price"))
	for _, args := range [][]string{{"remove", "orders", "--consumer", ""}, {"append", "orders", "x", "--producer", ""}} {
		_, e := s.run(exitUsage, "", append([]string{"jobs"}, args...)...)
		require.Contains(t, e, "it is empty", "a variable that is not set would remove the log, or append twice")
	}
	require.Equal(t, "removed orders", s.ok("jobs", "remove", "orders"))
	require.JSONEq(t, `{"logs":[]}`, s.ok("jobs", "list", "--json"))
}

// TestJobsBeforeOneThatCantBeReadAreShown has the third job of a log in the words of a newer version.
func TestJobsBeforeOneThatCantBeReadAreShown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("jobs", "append", "orders", "one", "two", "three", "four")
	db, err := kvopen.Open(t.Context(), s.store, kvopen.Options{})
	require.NoError(t, err)
	c, err := fdbmodel.Open(t.Context(), db, "default", fdbmodel.Options{})
	require.NoError(t, err)
	_, err = c.Transact(t.Context(), kv.Options{}, func(tx kv.Attempt) error {
		tx.Set(joblog.Keys(c.Keys()).Job("orders", 3), []byte{layout.RecordVersion + 1, 0x80})
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	out, e := s.run(exitUnreadable, "", "jobs", "read", "orders")
	require.Regexp(t, `(?m)^2 .* +two$`, out)
	require.Contains(t, e, "newer version")
	out, _ = s.run(exitUnreadable, "", "jobs", "read", "orders", "--json")
	require.Len(t, listed[jobForm](t, "jobs", out), 2)
	out, _ = s.run(exitUnreadable, "", "jobs", "read", "orders", "--from", "3")
	require.Empty(t, out)
	require.Contains(t, s.ok("jobs", "read", "orders", "--from", "4"), "four")
}

// TestJobsAreAppendedOnce repeats an append of a file that grows.
func TestJobsAreAppendedOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := strings.Repeat("line\n", 1500)
	args := []string{"jobs", "append", "orders", "--producer", "file", "--json"}
	for _, want := range []appended{
		{Queue: "orders", Appended: 1500, First: 1}, {Queue: "orders", Skipped: 1500},
		{Queue: "orders", Appended: 1300, Skipped: 1500, First: 1501},
	} {
		if want.Skipped > 0 && want.Appended > 0 {
			file += strings.Repeat("more\n", 1300)
		}
		out, _ := s.run(exitOK, file, args...)
		var got appended
		require.NoError(t, json.Unmarshal([]byte(out), &got))
		require.Equal(t, want, got)
	}
	_, e := s.run(exitUsage, file+"fine\n"+strings.Repeat("x", 17<<10)+"\n", args...)
	require.Contains(t, e, "line 2802")
	require.Contains(t, e, "appended 1 job, and then: ")
	require.Regexp(t, `(?m)^orders +1-2801`, s.ok("jobs", "list"))
}

// TestRowsOfJobs has logs whose jobs are all done and gone, and without consumers.
func TestRowsOfJobs(t *testing.T) {
	t.Parallel()
	behind := int64(0)
	done := jobsRows(&httpapi.JobLog{Queue: "a", First: 8, Last: 7,
		Consumers: []httpapi.JobConsumer{{Name: "c", Processed: 7, Behind: &behind}}})
	require.Equal(t, [][]string{{"a", "none", "c", "7", "0", "0", "", ""}}, done)
	unread := jobsRows(&httpapi.JobLog{Queue: "b", First: 1, Last: 2})
	require.Equal(t, "1-2", unread[0][1])
	require.Len(t, unread[0], len(done[0]), "or the columns after it are not under their names")
}

func TestMistakesWithJobs(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.run(exitOK, "one\n", "jobs", "append", "orders")
	for says, args := range map[string][]string{
		"queue \"a b\"":    {"append", "a b"},
		"producer \"a b\"": {"append", "orders", "--producer", "a b"},
		"or --all":         {"retry", "orders", "price"},
		"index \"x\"":      {"drop", "orders", "price", "x"},
		"--limit":          {"parked", "orders", "price", "--limit", "0"},
		"--from -1":        {"read", "orders", "--from", "-1"},
		"accepts 1 arg":    {"remove"},
		"consumer \"a b\"": {"remove", "orders", "--consumer", "a b"},
		"accepts at most":  {"list", "a", "b"},
	} {
		_, e := s.run(exitUsage, "x\n", append([]string{"jobs"}, args...)...)
		require.Contains(t, e, says)
	}
	for _, args := range [][]string{
		{"list", "none"}, {"read", "none"}, {"parked", "none", "price"}, {"parked", "orders", "none"},
		{"retry", "orders", "none", "1"}, {"drop", "none", "price", "--all"}, {"remove", "none"},
		{"remove", "orders", "--consumer", "none"},
	} {
		_, e := s.run(exitNotFound, "", append([]string{"jobs"}, args...)...)
		require.Contains(t, e, "none")
		require.NotContains(t, e, " :")
	}
}

// TestParkedJobsThatWereChangedAreNamedBesideAnError has the second of three fail.
func TestParkedJobsThatWereChangedAreNamedBesideAnError(t *testing.T) {
	t.Parallel()
	db := embedded.OpenMemory(embedded.Options{})
	defer func() { require.NoError(t, db.Close()) }()
	c, err := futures.New(t.Context(), db, futures.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close(t.Context())) }()
	var out strings.Builder
	a := &app{out: &out, json: true}
	err = a.changeParked(t.Context(), c, joblog.Consumer{Queue: "orders", Name: "price"}, []int64{1, 2, 3, 4}, "retried",
		func(_ *joblog.Logs, _ context.Context, _ joblog.Consumer, index int64) error {
			return map[int64]error{1: fdbmodel.ErrNotFound, 3: kv.ErrUnavailable}[index]
		})
	require.ErrorIs(t, err, fdbmodel.ErrNotFound)
	require.ErrorIs(t, err, kv.ErrUnavailable)
	var said struct{ Indexes []int64 }
	require.NoError(t, json.Unmarshal([]byte(out.String()), &said))
	require.Equal(t, []int64{2}, said.Indexes)
}
