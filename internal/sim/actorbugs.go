package sim

import (
	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// actorBugs are about actors. They need runs that have some: Options.Actors.
func actorBugs() []plantedBug {
	finish := []string{tagFinish}
	return []plantedBug{
		{name: "state forgotten", text: "a turn leaves the state of an actor as it was", tags: finish,
			get: seeHead, write: keepState},
		{name: "head forgotten", text: "a turn writes a part, and not the head", tags: finish,
			write: drop(setKey, actors.KeyHead)},
		{name: "part forgotten", text: "a turn writes a state, and not the part with it", tags: finish,
			write: drop(setKey, actors.KeyPart)},
		{name: "turn forgotten", text: "a result comes without its turn", tags: finish, write: dropActors},
		{name: "half of a turn", text: "of two actors, a turn changes one", tags: finish, write: dropFirstActor},
		{name: "turn unchecked", text: "a turn counts on states that have changed", tags: append(finish, tagRead),
			get: showOwnHead, write: noteOwnHead},
		{name: "turn of the dead", text: "a worker that lost its claim still has its turn", tags: finish, page: showOwnClaim},
		{name: "turns without conflicts", text: "a turn does not see what changes until it commits", tags: finish,
			blind: true},
		{name: "state mistaken", text: "a turn writes the state of another attempt", tags: finish, write: swapState},
		{name: "turn taken twice", text: "a turn is on the list twice", tags: finish, write: doubleState},
		{name: "row forgotten", text: "a step comes without the row of its transaction", tags: []string{tagStep},
			write: dropRow},
		{name: "row twice", text: "a step comes twice into the row of its transaction", tags: []string{tagStep},
			write: doubleRow},
		{name: sentAtOnce, text: "a turn submits what it sends before it counts"},
		{name: sentNever, text: "of four turns, one counts without what it sends"},
	}
}

// isOfActor reports whether a mutation writes a part of what an actor is.
func isOfActor(m *mutation) bool {
	return m.is(setKey, actors.KeyState) || m.is(setKey, actors.KeyHead) || m.is(setKey, actors.KeyPart)
}

func dropActors(_ *tx, m *mutation) {
	if !isOfActor(m) {
		m.do()
	}
}

// dropFirstActor leaves out what a turn makes of one actor.
func dropFirstActor(_ *tx, m *mutation) {
	if !isOfActor(m) || m.key.Text("key") != "0" {
		m.do()
	}
}

// showOwnHead shows a process the head that it knows.
func showOwnHead(t *tx, key, value []byte) []byte {
	if !isKind(key, actors.KeyHead) {
		return value
	}
	if own, known := t.process.heads[string(key)]; known && t.tag == tagFinish {
		return own
	}
	t.process.noteHead(key, value)
	return value
}

func noteOwnHead(t *tx, m *mutation) {
	if m.is(setKey, actors.KeyHead) {
		t.process.noteHead(m.key.Raw, m.value)
	}
	m.do()
}

func (p *process) noteHead(key, value []byte) {
	if p.heads == nil {
		p.heads = map[string][]byte{}
	}
	p.heads[string(key)] = value
}

// seeHead notes the head of an actor as a turn finds it.
func seeHead(t *tx, key, value []byte) []byte {
	if isKind(key, actors.KeyHead) {
		t.process.noteHead(key, value)
	}
	return value
}

// keepState writes the state that was found.
func keepState(t *tx, m *mutation) {
	var was actors.HeadRecord // without a state, if none was found
	_ = layout.Decode(m.key.Raw, t.process.heads[string(m.key.Raw)], &was)
	if !m.is(setKey, actors.KeyState) && !changeState(t, m, func([]byte) []byte { return was.State }) {
		m.do()
	}
}

// changeState writes another state than the one within a head, and reports whether there is one.
func changeState(t *tx, m *mutation, change func(state []byte) []byte) bool {
	var head actors.HeadRecord
	if !m.is(setKey, actors.KeyHead) || layout.Decode(m.key.Raw, m.value, &head) != nil || head.Beside() {
		return false
	}
	head.State = change(head.State)
	head.Size = int64(len(head.State))
	t.Tx.Set(m.key.Raw, layout.Encode(&head))
	return true
}

// swapState writes a state of the same size.
func swapState(t *tx, m *mutation) {
	swap := func(state []byte) []byte {
		state = append([]byte(nil), state...)
		state[len(state)-2] ^= 1
		return state
	}
	switch {
	case m.is(setKey, actors.KeyState):
		t.Tx.Set(m.key.Raw, swap(m.value))
	case !changeState(t, m, swap):
		m.do()
	}
}

// doubleState writes the list of an actor twice, with a head that says so.
func doubleState(t *tx, m *mutation) {
	twice := func(state []byte) []byte { return append(append([]byte(nil), state...), state...) }
	var head actors.HeadRecord
	switch {
	case m.is(setKey, actors.KeyState):
		t.Tx.Set(m.key.Raw, twice(m.value))
	case changeState(t, m, twice):
	case m.is(setKey, actors.KeyHead) && layout.Decode(m.key.Raw, m.value, &head) == nil:
		head.Size *= 2
		t.Tx.Set(m.key.Raw, layout.Encode(&head))
	default:
		m.do()
	}
}
