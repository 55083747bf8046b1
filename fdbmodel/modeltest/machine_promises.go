package modeltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/futura-run/futura/fdbmodel"
	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/fdbmodel/promises"
)

// promise makes a promise, sometimes with a key or a name that another future has, or draws
// another token of one.
func (m *Machine) promise(ctx context.Context) (change, error) {
	if id := m.some(); m.random.IntN(3) == 0 && m.isPromise(id) {
		return m.newToken(ctx, id)
	}
	s := fdbmodel.Submission{Spec: layout.Spec{Session: []layout.SessionID{"s1", ""}[m.random.IntN(2)], Tags: m.tags()}}
	if m.random.IntN(3) == 0 {
		s.Key = fmt.Sprint("promise", m.random.IntN(3))
		s.Spec.Tags = nil
	} else {
		m.drawUnique(&s)
	}
	m.limit(&s.Spec)
	made, err := promises.Of(m.C).Make(ctx, s)
	m.logf("promise %s %q: existed %t, %v %v", made.ID, s.Key, made.Existed, made.State, err)
	if err == nil && made.Existed != made.Token.IsZero() {
		m.fail("a promise has a token if it was made, and only then")
	}
	if err == nil && !made.Existed {
		m.tokens[made.ID] = append(m.tokens[made.ID], made.Token)
	}
	if m.refusedAsNotUnique(err) {
		return none, nil
	}
	cut := err != nil
	return func(before, after *layout.Row) bool {
		if isReplaced(before, after, []fdbmodel.Submission{s}, false) {
			return true
		}
		return before == nil && (cut || after.ID == made.ID) && after.Spec.IsPromise() && after.State() == layout.Blocked &&
			after.Attempts == (layout.Attempts{})
	}, err
}

func (m *Machine) isPromise(id layout.ID) bool {
	row := m.Rows[id]
	return row != nil && row.Spec.IsPromise()
}

func (m *Machine) newToken(ctx context.Context, id layout.ID) (change, error) {
	token, err := promises.Of(m.C).NewToken(ctx, id)
	m.logf("new token of %s: %v", id, err)
	switch {
	case err == nil:
		m.tokens[id] = append(m.tokens[id], token)
	case errors.Is(err, fdbmodel.ErrTransition) && (m.Rows[id].State().Terminal() || len(m.loose) > 0):
		err = nil
	case errors.Is(err, fdbmodel.ErrNotFound) && len(m.loose) > 0:
		err = nil
	default:
		m.tokens[id] = append(m.tokens[id], promises.Token{ID: id}) // it may have been drawn
	}
	return none, err
}

// complete completes a promise by its id, or by a token of it: the last one that was drawn,
// an earlier one, or that of another promise.
func (m *Machine) complete(ctx context.Context) (change, error) {
	isFailed := m.random.IntN(3) == 0
	id := m.someOr(func(r *layout.Row) bool { return r.Spec.IsPromise() && (!isFailed || r.State() == layout.Failed) })
	var token *promises.Token
	last, replaced, perhaps := true, false, promises.Token{ID: id}
	if drawn := m.tokens[id]; len(drawn) > 0 && m.random.IntN(2) == 0 {
		n := m.random.IntN(len(drawn))
		token, last = &drawn[n], n == len(drawn)-1
		replaced = slices.ContainsFunc(drawn[n+1:], func(later promises.Token) bool { return later != perhaps })
	}
	reject, value, message := m.random.IntN(3) == 0, make([]byte, []int{3, 4, 5000}[m.random.IntN(3)]), ""
	if m.random.IntN(2) == 0 {
		message = "why"
	}
	if row := m.Rows[id]; isFailed && row != nil && row.State() == layout.Failed {
		reject, message = true, row.Exception.Message // as it was
	}
	already, err := m.completeBy(ctx, id, token, reject, value, message)
	m.logf("complete %s (token %t, the last %t, reject %t %q, %d bytes): %t %v", id, token != nil, last, reject, message,
		len(value), already, err)
	row, settled := m.Rows[id], len(m.loose) == 0
	open := settled && m.isPromise(id) && row.State() == layout.Blocked
	switch {
	case err == nil && replaced && settled:
		m.fail("a token opens a promise after another one was drawn")
	case err == nil && settled && (already == open || !m.isPromise(id)):
		m.fail("promise %s was completed: already %t", id, already)
	case err == nil && already && settled && reject != (row.State() == layout.Failed):
		m.fail("promise %s is %s, and that was said to be the same", id, row.State())
	case errors.Is(err, promises.ErrBadToken) && settled && last && token != nil && *token != perhaps &&
		row != nil:
		m.fail("the last token of promise %s does not open it", id)
	case errors.Is(err, promises.ErrConflict) && open, errors.Is(err, promises.ErrNoPromise) && m.isPromise(id) && settled:
		m.fail("promise %s is open, and can't be completed", id)
	}
	for _, refusal := range []error{promises.ErrBadToken, promises.ErrConflict, promises.ErrCancelled, promises.ErrExpired,
		promises.ErrNoPromise, fdbmodel.ErrNotFound} {
		if errors.Is(err, refusal) {
			err = nil
		}
	}
	return func(before, after *layout.Row) bool {
		if before == nil || after == nil || after.ID != id || before.State() != layout.Blocked || !after.Spec.IsPromise() {
			return false
		}
		if m.isOver(before, after) {
			return true
		}
		if reject {
			return after.State() == layout.Failed && after.Exception.Kind == layout.KindError && after.Exception.Permanent
		}
		return after.State() == layout.Realized && after.Result.Size == int64(len(value))
	}, err
}

func (m *Machine) completeBy(ctx context.Context, id layout.ID, token *promises.Token, reject bool, value []byte,
	message string,
) (already bool, err error) {
	all, v := promises.Of(m.C), promises.Value{Bytes: value}
	switch {
	case token != nil && reject:
		return all.RejectBy(ctx, *token, message)
	case token != nil:
		return all.ResolveBy(ctx, *token, v)
	case reject:
		return all.Reject(ctx, id, message)
	}
	return all.Resolve(ctx, id, v)
}

// completeAll resolves the promises that are left.
func (m *Machine) completeAll(ctx context.Context) {
	for _, row := range m.list() {
		if row.Spec.IsPromise() && !row.State().Terminal() {
			_, err := promises.Of(m.C).Resolve(ctx, row.ID, promises.Value{Bytes: []byte("end")})
			if !errors.Is(err, promises.ErrExpired) {
				m.require(err)
			}
		}
	}
}
