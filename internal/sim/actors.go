package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/internal/taskcontext"
	"github.com/futura-run/futura/workers"
)

// turns are what the turns of functions did.
type turns struct {
	// lists are the states of actors as the checkers have last seen them: one line for each turn.
	lists map[string][]string
	// missing are attempts that count, of which what they sent was not applied at the last look.
	missing []string
}

// takesTurn reports whether a future of a function takes a turn. An id that follows from a key may be
// that of another future later.
func (w *world) takesTurn(name string, id layout.ID) bool {
	return w.options.Actors > 0 && (name == fnUpper || name == fnFlaky || name == fnSlow) && !id.Time().IsZero()
}

// actorsOf are the two actors that a future has a turn over.
func (w *world) actorsOf(id layout.ID) [2]actors.Ref {
	n := w.options.Actors
	first := int(id[15]) % n
	second := (first + 1 + int(id[14])%(n-1)) % n
	ref := func(n int) actors.Ref { return actors.Ref{Type: "sim", Key: fmt.Sprint(n)} }
	return [2]actors.Ref{ref(first), ref(second)}
}

// inTurn runs a function that has its attempt on the lists of two actors, before or after the rest, and sends
// it to another one. Everything may happen in between.
func (w *world) inTurn(ctx context.Context, p *workerProcess, info *workers.Info, fn func() ([]byte, error),
) ([]byte, error) {
	turn := ctx.Value(taskcontext.TurnKey{}).(taskcontext.Turn)
	first := w.random.IntN(2)
	both := w.actorsOf(info.ID)
	if err := list(ctx, turn, both[first], lineOf(info)); err != nil {
		return nil, err
	}
	if err := w.send(ctx, p, turn, lineOf(info)); err != nil {
		return nil, err
	}
	value, err := fn()
	if err == nil {
		err = list(ctx, turn, both[1-first], lineOf(info))
	}
	return value, err
}

// lineOf is the line of an attempt on lists.
func lineOf(info *workers.Info) string { return info.ID.String() + " " + info.Token.String() }

// lengthPart is the part of an actor that has the length of its list.
var lengthPart = actors.PartRange{Name: "length"}

// list adds a line to the list of an actor, and one to the length.
func list(ctx context.Context, turn taskcontext.Turn, ref actors.Ref, line string) error {
	_, err := turn.Actors(ctx, []actors.Ref{ref}, func(s *actors.State) (any, func() (actors.Change, error), error) {
		list := append(slices.Clone(s.Value), line+"\n"...)
		c := actors.Change{Read: *s, Write: true, Value: list}
		return nil, func() (actors.Change, error) { return c, nil }, nil
	})
	if err != nil {
		return err
	}
	found, _, err := turn.Parts(ctx, ref, lengthPart)
	if err != nil {
		return err
	}
	length := actors.PartRecord{Value: []byte(strconv.Itoa(1 + lengthIn(found)))}
	return turn.SetPart(ref, actors.Part{Name: lengthPart.Name, PartRecord: length})
}

// lengthIn is the length that a part has, if it was found.
func lengthIn(found []actors.Part) (n int) {
	if len(found) > 0 {
		n, _ = strconv.Atoi(string(found[0].Value))
	}
	return n
}

// checkActors requires that each future that took its turn and was realized is on both of its lists
// once, that nothing else is, that lists only grow, and that two turns over the same two actors are in
// the same order on both.
func (w *world) checkActors(ctx context.Context) error {
	if w.options.Actors == 0 {
		return nil
	}
	defer w.calm()()
	var problems []error
	at := map[string]map[string]int{} // by key, the place of each attempt
	for n := range w.options.Actors {
		key := fmt.Sprint(n)
		list, err := w.readList(ctx, key)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if was := w.turns.lists[key]; len(list) < len(was) || !slices.Equal(was, list[:len(was)]) {
			problems = append(problems, fmt.Errorf("actor %s had the list %q, and has %q", key, was, list))
		}
		if w.turns.lists == nil {
			w.turns.lists = map[string][]string{}
		}
		w.turns.lists[key], at[key] = list, map[string]int{}
		for i, line := range list {
			if _, twice := at[key][line]; twice {
				problems = append(problems, fmt.Errorf("attempt %s is twice on the list of actor %s", line, key))
			}
			at[key][line] = i
		}
	}
	return errors.Join(append(problems, w.checkTurns(ctx, at), w.checkSent(ctx, at))...)
}

func (w *world) readList(ctx context.Context, key string) ([]string, error) {
	state, err := actors.Of(w.reader).Read(ctx, actors.Ref{Type: "sim", Key: key})
	if err != nil || !state.Exists() {
		return nil, err
	}
	list := strings.Split(strings.TrimSuffix(string(state.Value), "\n"), "\n")
	found, _, err := actors.Of(w.reader).PartsOf(ctx, &state, lengthPart)
	if n := lengthIn(found); err == nil && n != len(list) {
		err = fmt.Errorf("the list of actor %s has the length %d by its part, and %d", key, n, len(list))
	}
	return list, err
}

// checkTurns compares the lists with each other, and with the futures.
func (w *world) checkTurns(ctx context.Context, at map[string]map[string]int) error {
	var problems []error
	listed := map[layout.ID]int{}
	orders := map[[2]string][][2]int{} // by a pair of actors, the places of the attempts on both
	for key, lines := range at {
		for line, place := range lines {
			name, _, _ := strings.Cut(line, " ")
			id, err := layout.ParseID(name)
			if err != nil {
				problems = append(problems, fmt.Errorf("actor %s: %q: %w", key, line, err))
				continue
			}
			both := w.actorsOf(id)
			pair := [2]string{both[0].Key, both[1].Key}
			slices.Sort(pair[:])
			listed[id]++
			other, is := at[pair[1]][line]
			if key != pair[0] {
				if _, is := at[pair[0]][line]; !is {
					problems = append(problems, fmt.Errorf("attempt %s is on the list of actor %s, and not of %s", line, key, pair[0]))
				}
				continue
			}
			if !is {
				problems = append(problems, fmt.Errorf("attempt %s is on the list of actor %s, and not of %s", line, key, pair[1]))
			}
			orders[pair] = append(orders[pair], [2]int{place, other})
		}
	}
	for pair, places := range orders {
		slices.SortFunc(places, func(a, b [2]int) int { return a[0] - b[0] })
		if !slices.IsSortedFunc(places, func(a, b [2]int) int { return a[1] - b[1] }) {
			problems = append(problems, fmt.Errorf("actors %v have the same turns in different orders: %v", pair, places))
		}
	}
	return errors.Join(append(problems, w.checkListed(ctx, listed))...)
}

// checkListed requires that futures are on their two lists exactly if they are realized: again for
// each time that their result was lost.
func (w *world) checkListed(ctx context.Context, listed map[layout.ID]int) error {
	var problems []error
	for _, r := range w.client.requests {
		id := r.submission.ID
		if !w.takesTurn(strings.TrimPrefix(r.submission.Spec.Function, "go:"), id) || r.submission.Spec.Member {
			continue
		}
		rows, err := w.reader.GetMany(ctx, []layout.ID{id})
		if err != nil || len(rows) == 0 {
			problems = append(problems, err)
			continue
		}
		row, n := &rows[0], listed[id]
		once := row.Attempts.Rebuilt == 0 && !row.Spec.AsObject // a lost object may be retried as well
		switch {
		case row.State() == layout.Realized && (n < 2 || n != 2 && once):
			problems = append(problems, fmt.Errorf("future %s is realized, and on lists of actors %d times", id, n))
		case row.State() != layout.Realized && n > 0 && once:
			problems = append(problems, fmt.Errorf("future %s is %v, and on lists of actors %d times", id, row.State(), n))
		}
	}
	return errors.Join(problems...)
}
