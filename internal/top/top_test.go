package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/futures"
	"github.com/futura-run/futura/futures/httpapi"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile is what a terminal must not obey: it clears, moves, renames, reverses and breaks lines.
const hostile = "\x1b[2J\x1b]0;owned\x07\r\b\u009b31m\u202e\n日本\tx"

func future(n byte, state layout.State, message string) httpapi.Future {
	f := httpapi.Future{ID: futures.ID{15: n}, State: httpapi.State(state.String()), Function: "go:f" + hostile}
	if message != "" {
		f.Failure = &httpapi.Failure{Kind: "error", Message: message}
	}
	return f
}

// crowded is a snapshot of as much as one can have, with hostile names.
func crowded() *Snapshot {
	s := &Snapshot{Overview: httpapi.Overview{Cluster: "shop", At: time.UnixMilli(1_800_000_000_000).UTC(),
		Alive: 999, Dead: 1, Slots: 7992, Free: 2997}}
	oldest := s.At.Add(-3 * time.Hour)
	for i := range 60 {
		q := httpapi.OverviewQueue{OldestReady: &oldest}
		q.Queue, q.Ready = fmt.Sprintf("queue%02d%s", i, hostile), int64(100-i)
		s.Total.Add(&q.QueueCounts)
		s.Queues = append(s.Queues, q)
	}
	for i := range 1000 {
		w := httpapi.Worker{ID: layout.WorkerID(fmt.Sprintf("%016x", i)), Name: fmt.Sprintf("w%03d", i) + hostile,
			Alive: i > 0, Draining: i > 980, Queues: []string{"mail" + hostile}, Functions: []string{"wasm:*"}}
		w.Capacity.Slots, w.Free.Slots = 8, 3
		s.Workers = append(s.Workers, w)
	}
	// The dead first, then those that stop.
	s.Workers = slices.Concat(s.Workers[:1], s.Workers[981:], s.Workers[1:981])
	for i := range 65 {
		f := httpapi.ActivityFunction{Function: fmt.Sprintf("go:f%02d", i) + hostile, Queue: "mail"}
		f.Succeeded, f.FailedAttempts, f.RunP50MS, f.WaitP99MS = 10, int64(65-i), 1500, 90_000
		s.Functions = append(s.Functions, f)
	}
	for i := range 100 {
		s.futures = append(s.futures, future(byte(i), layout.States()[i%6], strings.Repeat(hostile, i*20)))
	}
	s.Failed = s.futures[:5]
	s.Wrong = []httpapi.Trouble{{Severity: httpapi.Bad, Text: "1 worker died"}}
	for _, f := range s.Functions[:18] {
		s.Wrong = append(s.Wrong, httpapi.Trouble{Severity: httpapi.Bad, Text: f.Function + " fails"})
	}
	s.Wrong = append(s.Wrong, httpapi.Trouble{Severity: httpapi.Warn, Text: hostile})
	return s
}

// stage runs a model without a terminal, and answers what it reads.
type stage struct {
	*Model
	t       *testing.T
	found   *Snapshot
	err     error
	queries []Query
}

func newStage(t *testing.T, found *Snapshot) *stage {
	s := &stage{t: t, found: found}
	s.Model = &Model{ctx: context.Background(), every: time.Hour,
		read: func(_ context.Context, q Query) (*Snapshot, error) {
			s.queries = append(s.queries, q)
			if s.err != nil {
				return nil, s.err
			}
			copied := *s.found
			return &copied, nil
		},
		tell: func(_ context.Context, id futures.ID) ([]string, error) {
			return []string{"why " + id.String(), "last error" + hostile}, s.err
		}}
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.answer(s.Init())
	return s
}

// answer gives the model what a command returns.
func (s *stage) answer(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	_, next := s.Update(cmd())
	return next
}

func (s *stage) press(keys ...string) (cmd tea.Cmd) {
	for _, key := range keys {
		k := tea.Key{Text: key}
		switch key {
		case "enter":
			k = tea.Key{Code: tea.KeyEnter}
		case "esc":
			k = tea.Key{Code: tea.KeyEscape}
		case "backspace":
			k = tea.Key{Code: tea.KeyBackspace}
		case "pgdown":
			k = tea.Key{Code: tea.KeyPgDown}
		case "ctrl+c":
			k = tea.Key{Code: 'c', Mod: tea.ModCtrl}
		default:
			k.Code = []rune(key)[0]
		}
		_, cmd = s.Update(tea.KeyPressMsg(k))
	}
	return cmd
}

// shown is the screen as text. Each line fits, and it has no control characters beside colours.
func (s *stage) shown() string {
	content := s.View().Content
	lines := strings.Split(content, "\n")
	require.LessOrEqual(s.t, len(lines), max(1, s.height))
	for _, l := range lines {
		text := ansi.Strip(l)
		require.LessOrEqual(s.t, ansi.StringWidth(text), s.width, text)
		for _, r := range text {
			require.True(s.t, unicode.IsPrint(r), "%q", text)
		}
		for _, part := range strings.Split(l, "\x1b")[1:] {
			require.Regexp(s.t, `^\[[0-9;]*m`, part)
		}
	}
	return ansi.Strip(content)
}

func TestViewsFitEveryTerminal(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	for _, size := range [][2]int{{80, 24}, {200, 70}, {20, 8}, {1, 1}, {}} {
		s.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, view := range []string{"1", "2", "3", "4"} {
			s.answer(s.press(view))
			s.shown()
			s.press("k", "pgdown", "j")
			s.shown()
		}
		s.answer(s.press("enter"))
		s.shown()
		s.press("esc", "?")
		s.shown()
		s.press("?")
		s.err = errors.New("no " + hostile)
		s.answer(s.look())
		s.shown()
		s.err = nil
		s.answer(s.look())
	}
}

func TestOverviewHasAllPartsIn24Lines(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	text := s.shown()
	require.Len(t, strings.Split(text, "\n"), 24)
	for _, part := range []string{
		"cluster shop", "1 [overview]", "waiting 4230   running 0", "workers 999   slots free 2997 of 7992", "failed 0",
		"What is wrong", "[bad] 1 worker died", "[bad] go:f00", "more)", "QUEUE", "queue00", " 3h ", "Failed lately",
		"? help",
	} {
		require.Contains(t, text, part)
	}
	require.Contains(t, Text(s.snapshot, 1<<30), "queue49")
	for _, r := range Text(s.snapshot, 80) {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%q", r)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	s.press("2")
	require.Contains(t, s.shown(), "> w000")
	require.Regexp(t, `> w000.* dead +5 of 8 `, s.shown())
	s.press("j", "j")
	require.Contains(t, s.shown(), "> w982", "those that stop are behind the dead")
	s.press("/", "W", "0", "0", "7", "x", "backspace", "enter")
	require.Contains(t, s.shown(), "> w007")
	require.NotContains(t, s.shown(), "w008")
	require.Contains(t, s.shown(), "filter: W007")
	s.press("esc")
	require.Contains(t, s.shown(), "w008")
	s.press("3")
	require.Regexp(t, `> go:f00.* 10 +65 +0 +1s +0ms +0ms +1min`, s.shown())
	s.press("?")
	require.Contains(t, s.shown(), "Ctrl-C    quit")
	s.press("?")
	for _, key := range []string{"q", "ctrl+c"} {
		require.Equal(t, tea.QuitMsg{}, s.press(key)())
	}
	s.press("/")
	require.Nil(t, s.press("q"), "it is a letter of the filter")
	require.Equal(t, tea.QuitMsg{}, s.press("ctrl+c")())
}

func TestFuturesByState(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	s.answer(s.press("4"))
	require.Equal(t, Query{List: true}, s.queries[1])
	s.answer(s.press("s"))
	require.Equal(t, Query{true, layout.States()[0]}, s.queries[2])
	require.Contains(t, s.shown(), "only "+layout.States()[0].String())
	s.answer(s.press("j", "enter"))
	require.Contains(t, s.shown(), "why "+futures.ID{15: 1}.String())
	require.Contains(t, s.shown(), "last error [2J")
	s.Update(futureMsg{s.detail, []string{"old"}})
	for _, cmd := range s.answer(s.look())().(tea.BatchMsg)[1:] {
		s.answer(cmd)
	}
	require.Contains(t, s.shown(), "why ", "it is asked again")
	s.press("esc")
	require.Contains(t, s.shown(), "> …000000000001")

	s.found.futures = s.found.futures[1:]
	s.answer(s.look())
	require.Contains(t, s.shown(), "> …000000000001", "the selection stays with its future")
	read := s.look()
	require.Nil(t, s.press("s"), "it is read after what is being read")
	require.Contains(t, s.shown(), "nothing", "what is of another state is not shown")
	next := s.answer(read)
	require.Contains(t, s.shown(), "nothing")
	s.answer(next)
	require.Equal(t, Query{true, layout.States()[1]}, s.queries[len(s.queries)-1])
	require.Contains(t, s.shown(), "> …0000000")
}

func TestStoreErrorsAreShownAndItGoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	s.err = errors.New("the store is away" + hostile)
	require.NotNil(t, s.answer(s.look()), "it reads again")
	require.Contains(t, s.shown(), "[error] nothing new since "+s.snapshot.At.Format(time.TimeOnly)+": the store is away")
	s.answer(s.press("4"))
	s.answer(s.press("enter"))
	require.Contains(t, s.shown(), "[error] the store is away")
	s.err = nil
	s.press("1")
	s.answer(s.look())
	require.NotContains(t, s.shown(), "error]")
}

func TestPauseStopsReading(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	s.press("p")
	require.Contains(t, s.shown(), "[paused]")
	_, cmd := s.Update(turnMsg(s.turn))
	require.Nil(t, cmd)
	require.NotNil(t, s.press("p"))
	stale := turnMsg(s.turn - 1)
	_, cmd = s.Update(stale)
	require.Nil(t, cmd, "a key has it read sooner")
}

// TestAFilterOverAShorterList filters right after a future was shown, while others of the list went.
func TestAFilterOverAShorterList(t *testing.T) {
	t.Parallel()
	s := newStage(t, crowded())
	s.answer(s.press("4"))
	s.press("pgdown", "pgdown")
	s.answer(s.press("enter"))
	s.found.futures = s.found.futures[:3]
	s.answer(s.look())
	s.press("/")
	require.Contains(t, s.shown(), "> …000000000002")
}
