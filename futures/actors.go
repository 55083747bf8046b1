package futures

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/futura-run/futura/fdbmodel/actors"
	"github.com/futura-run/futura/fdbmodel/inspect"
	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/fdbmodel/lanes"
	"github.com/futura-run/futura/fdbmodel/layout"
)

// ActorView is what is known of an actor.
type ActorView struct {
	Type string `json:"type"`
	Key  string `json:"key"`
	// Version counts the calls that have changed the state or a part, from 1, Size is that of the state, in bytes
	// as it is stored, and Schema the number that its type had given it, 0 for none. Parts says that it has
	// parts, or had some: see ActorParts.
	Version int64  `json:"version"`
	Size    int64  `json:"size"`
	Schema  int    `json:"schema,omitempty"`
	Codec   string `json:"codec,omitempty"`
	Parts   bool   `json:"parts,omitempty"`
	// CreatedAt is when the actor got a state, ChangedAt when that last changed, and Call the
	// future that changed it.
	CreatedAt time.Time `json:"created_at"`
	ChangedAt time.Time `json:"changed_at"`
	Call      ID        `json:"call"`
	// Waiting is how many calls wait for their turn, up to 1,000 or MaxWaiting; MoreWaiting is set if there
	// are others. MaxWaiting is how many may, 0 for no bound: LaneSettings.MaxWaiting of the type.
	// Running is the call that runs, if there is one and it was found. None of them is in lists.
	Waiting     int  `json:"waiting,omitempty"`
	MoreWaiting bool `json:"more_waiting,omitempty"`
	MaxWaiting  int  `json:"max_waiting,omitempty"`
	Running     ID   `json:"running,omitzero"`
	// Problem says why the record of an actor in a list can't be read. The others are zero then.
	Problem string `json:"problem,omitempty"`
	// Value is the state, in Codec. Actors leaves it out.
	Value []byte `json:"-"`
}

// String returns TYPE/KEY.
func (v *ActorView) String() string { return v.Type + "/" + v.Key }

// JSON returns the state as JSON for people: what Go encodes as msgpack has its names of fields, and
// byte strings as objects. It returns false for a state in another form.
func (v *ActorView) JSON() (json.RawMessage, bool) { return asJSON(v.Codec, v.Value) }

func asJSON(codec string, value []byte) (json.RawMessage, bool) {
	switch codec {
	case CodecJSON:
		return value, json.Valid(value)
	case CodecMsgpack:
		text, err := inspect.MsgpackAsJSON(value)
		return text, err == nil
	}
	return nil, false
}

// PartView is what is known of a named part of an actor.
type PartView struct {
	// Name is KIND/PART, of Parts.
	Name string `json:"name"`
	// Size is that of the value, in bytes as it is stored, and Schema the number that its kind had given it.
	Size   int64  `json:"size"`
	Schema int    `json:"schema,omitempty"`
	Codec  string `json:"codec,omitempty"`
	// Problem says why the part can't be read.
	Problem string `json:"problem,omitempty"`
	// Value is the part, in Codec.
	Value []byte `json:"-"`
}

// JSON returns the part as JSON for people, as ActorView.JSON does.
func (v *PartView) JSON() (json.RawMessage, bool) { return asJSON(v.Codec, v.Value) }

// goPrefix begins the names of Go functions.
const goPrefix = "go:"

// ParseActor parses TYPE/KEY, whose key may have slashes. It returns ErrBadName.
func ParseActor(text string) (name, key string, err error) {
	ref, err := actors.ParseRef(text)
	return ref.Type, ref.Key, err
}

func actorView(ref actors.Ref, h *actors.Head) ActorView {
	return ActorView{
		Type: ref.Type, Key: ref.Key, Version: h.Version, Size: h.Size, Schema: h.Schema, Codec: h.Codec, Parts: h.Parts,
		CreatedAt: timeOf(h.CreatedAt).UTC(), ChangedAt: timeOf(h.At).UTC(), Call: h.Call,
	}
}

// ActorTypes returns the types of which there are actors, in order, up to 1,000 of them.
func (c *Client) ActorTypes(ctx context.Context) ([]string, error) {
	if err := c.usable(); err != nil {
		return nil, err
	}
	return actors.Of(c.cluster).Types(ctx, maxLanes)
}

// Actors returns up to limit actors of a type, without their states, after the one with a key, or the
// first ones for an empty one: in an order that is the same each time. next is the key after which
// the others come, empty at the end. A limit of 0, or above 1,000, is 1,000. It returns ErrBadName.
func (c *Client) Actors(ctx context.Context, name, after string, limit int) (views []ActorView, next string,
	err error,
) {
	return c.listActors(ctx, name, after, limit, actors.Of(c.cluster).List)
}

// ActorStates is Actors with the states, as they were at one time. It returns fewer than limit where
// they have more than about 1 MB together.
func (c *Client) ActorStates(ctx context.Context, name, after string, limit int) (views []ActorView, next string,
	err error,
) {
	return c.listActors(ctx, name, after, limit, actors.Of(c.cluster).ListStates)
}

func (c *Client) listActors(ctx context.Context, name, after string, limit int,
	list func(ctx context.Context, name, after string, limit int) ([]actors.Listed, bool, error),
) (views []ActorView, next string, err error) {
	if err := c.usable(); err != nil {
		return nil, "", err
	}
	if limit <= 0 || limit > maxLanes {
		limit = maxLanes
	}
	all, more, err := list(ctx, name, after, limit)
	if err != nil {
		return nil, "", err
	}
	views = make([]ActorView, len(all))
	for i := range all {
		one := &all[i]
		views[i] = actorView(one.Ref, &one.Head)
		if views[i].Value = one.Value; one.Err != nil {
			views[i] = ActorView{Type: one.Type, Key: one.Key, Problem: one.Err.Error()}
		}
		next = one.Key
	}
	if !more {
		next = ""
	}
	return views, next, nil
}

// ActorState returns the state of an actor, which calls are about to change, and how many. It waits
// for none of them. It returns ErrBadName, ErrNotFound for an actor without a state, and an error for one that
// can't be read.
func (c *Client) ActorState(ctx context.Context, name, key string) (ActorView, error) {
	if err := c.usable(); err != nil {
		return ActorView{}, err
	}
	ref := actors.Ref{Type: name, Key: key}
	s, err := actors.Of(c.cluster).Read(ctx, ref)
	if err != nil {
		return ActorView{}, err
	}
	v := actorView(ref, &s.Head)
	v.Value = s.Value
	k, err := lanes.Of(c.cluster).Kind(ctx, actors.LaneKind(name))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return ActorView{}, err
	}
	v.MaxWaiting = k.MaxWaiting
	line, err := lanes.Of(c.cluster).View(ctx, ref.Lane(), max(maxLanes, k.MaxWaiting))
	if err != nil {
		return ActorView{}, err
	}
	v.Waiting, v.MoreWaiting = len(line.Line), line.More
	if !s.Exists() {
		return ActorView{}, fmt.Errorf("actor %s: %w: it has no state; calls admitted: %d, and in line: %d", ref,
			ErrNotFound, line.Open, v.Waiting)
	}
	if line.Open == 0 {
		return v, nil
	}
	running, _, err := inspect.Admitted(ctx, c.cluster, ref.Lane(), layout.Claimed)
	v.Running = running.ID
	return v, err
}

// ActorParts returns up to limit parts of an actor after the one with a name, or the first ones for an empty one, in
// the order of the bytes of their names. next is the name after which the others come, empty at the end. A limit
// of 0, or above MaxPartList, is MaxPartList; those of about 1 MB together are a page. It returns ErrBadName.
func (c *Client) ActorParts(ctx context.Context, name, key, after string, limit int) (views []PartView, next string,
	err error,
) {
	if err := c.usable(); err != nil {
		return nil, "", err
	}
	parts, next, err := actors.Of(c.cluster).Parts(ctx, actors.Ref{Type: name, Key: key},
		actors.PartRange{After: after, Limit: limit})
	views = make([]PartView, len(parts))
	for i := range parts {
		p := &parts[i]
		views[i] = PartView{Name: p.Name, Size: int64(len(p.Value)), Schema: p.Schema, Codec: p.Codec, Value: p.Value}
		if p.Err != nil {
			views[i].Problem = p.Err.Error()
		}
	}
	return views, next, err
}

// DeleteActor removes the state of an actor, and its parts. A call that has read it and not ended yet runs again, and
// it and later ones find the actor without a state. It returns ErrBadName, and ErrNotFound for an actor without
// a state. An unknown commit is retried.
func (c *Client) DeleteActor(ctx context.Context, name, key string) error {
	if err := c.usable(); err != nil {
		return err
	}
	return actors.Of(c.cluster).Delete(ctx, actors.Ref{Type: name, Key: key})
}

// CallActor calls a method of an actor without the Go type, and returns the future of its result; see
// ActorTask and Submit, whose errors it returns.
func (c *Client) CallActor(ctx context.Context, name, key, method string, t Task) (*Future, error) {
	t, err := c.ActorTask(ctx, name, key, method, t)
	if err != nil {
		return nil, err
	}
	return c.Submit(ctx, t)
}

// ActorTask returns t as a task that calls a method of an actor: its function, lane and codec are
// set. Args are the input as JSON, null for none. The cluster has the kind of lanes of the type from
// then on. A method wasm:NAME or wasm:NAME/EXPORT is a stored WASM module, for any type of actors.
//
// A method that all living workers which know it have registered as a Reader is called in no lane, and its Args
// have the key beside the input, as those of Reader.Task. Until such a worker has been seen, it is called in line:
// the same Key is ErrIDInUse for the other kind of call.
//
// It returns ErrBadName, and ErrNotFound for a module that is not stored, or for a method that no worker
// knows, if workers know others of the type or none has been called yet: a call by a wrong name would hold up
// all others to that actor. While no worker of the type runs, calls are taken and wait for one. It reads the
// records of all workers, unless it has seen less than ten seconds ago that one knows the method.
func (c *Client) ActorTask(ctx context.Context, name, key, method string, t Task) (Task, error) {
	if err := c.usable(); err != nil {
		return t, err
	}
	ref := actors.Ref{Type: name, Key: key}
	t.Function, t.Codec, t.Lane, t.calls = goPrefix+name+"."+method, CodecJSON, ref.Lane(), name
	_, _, isModule := layout.SplitWasm(method)
	if isModule {
		t.Function = method
	}
	if err := cmp.Or(ref.Check(), layout.CheckFunctionName(t.Function)); err != nil {
		return t, err
	}
	if method == "" {
		return t, fmt.Errorf("%w: actor %s: name the method to call", layout.ErrBadName, ref)
	}
	if len(t.Args) == 0 {
		t.Args = []byte("null")
	}
	if isModule {
		var err error
		if t.Function, err = c.cluster.ResolveFunction(ctx, method); err == nil {
			err = c.ensureActors(ctx, name)
		}
		return t, err
	}
	m, err := c.methodOf(ctx, name, t.Function)
	if err == nil && m.reads {
		t.Lane, t.calls = Lane{}, ""
		if t.Args, err = json.Marshal(Reading[json.RawMessage]{key, t.Args}); err != nil {
			err = fmt.Errorf("%w: the arguments must be JSON: %w", layout.ErrBadSpec, err)
		}
	}
	return t, err
}

// calledMethod is what is known of a method without its Go type: that workers run it, and that it is a reader.
type calledMethod struct {
	known, reads bool
	at           time.Time
}

// methodsKnown is how long what is known of a method counts, and of a kind of lanes.
const methodsKnown = 10 * time.Second

// methodOf returns what workers say of a method, and has the cluster have the lanes that its calls need. It returns
// ErrNotFound if calls of it should not wait for a worker.
func (c *Client) methodOf(ctx context.Context, name, function string) (calledMethod, error) {
	now := c.cluster.Now()
	if seen, is := c.methods.Load(function); is && now.Sub(seen.(calledMethod).at) < methodsKnown {
		return seen.(calledMethod), nil
	}
	knows, reads, err := c.knowMethod(ctx, name, function)
	m := calledMethod{knows, reads, now}
	if err != nil || !knows {
		return m, err
	}
	if !reads {
		if err := c.ensureActors(ctx, name); err != nil {
			return m, err
		}
	}
	c.methods.Store(function, m)
	return m, nil
}

// kindFound is when a kind of lanes was found first, and last.
type kindFound struct{ first, last time.Time }

// ensureActors has the cluster have the kind of lanes of a type: of width 1, unless it was set otherwise. An operator
// may have removed one that was found before: Submit and SubmitMany look again then, and what is sent is refused with
// the result that it is sent with, so that a kind counts for a while only.
func (c *Client) ensureActors(ctx context.Context, name string) error {
	now := c.cluster.Now()
	found := kindFound{first: now}
	if known, is := c.actors.Load(name); is {
		if found = known.(kindFound); now.Sub(found.last) < methodsKnown {
			return nil
		}
	}
	if err := actors.CheckType(name); err != nil {
		return err
	}
	if err := lanes.Of(c.cluster).EnsureKind(ctx, actors.LaneKind(name), layout.LaneKind{Width: 1}); err != nil {
		return fmt.Errorf("actors of type %s: %w", name, err)
	}
	found.last = c.cluster.Now()
	c.actors.Store(name, found)
	return nil
}

// forgetActors reports whether an error of a submit may say that a kind of lanes is gone which the client found
// before. The next look is at the store.
func (c *Client) forgetActors(err error, tasks ...Task) (again bool) {
	if !errors.Is(err, ErrNotFound) {
		return false
	}
	for i := range tasks {
		if name := tasks[i].calls; name != "" {
			c.actors.Delete(name)
			again = true
		}
	}
	return again
}

// ensureCalls is ensureActors for the types of actors that tasks of Method.Task call.
func (c *Client) ensureCalls(ctx context.Context, tasks ...Task) error {
	for i := range tasks {
		if name := tasks[i].calls; name != "" {
			if err := c.ensureActors(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// ensureCallsTx is ensureCalls in a transaction of the caller's, and returns the types whose kinds exist once
// it has committed. It may read as of before a kind was made, unless that is longer ago than any transaction lasts.
func (c *Client) ensureCallsTx(ctx context.Context, tx kv.Tx, tasks []Task) (made []string, err error) {
	for i := range tasks {
		name := tasks[i].calls
		if name == "" || slices.Contains(made, name) {
			continue
		}
		if known, is := c.actors.Load(name); is && c.cluster.Now().Sub(known.(kindFound).first) > kv.TxLifetime {
			continue
		}
		kind := actors.LaneKind(name)
		if err := lanes.Of(c.cluster).EnsureKindTx(ctx, tx, kind, layout.LaneKind{Width: 1}); err != nil {
			return nil, fmt.Errorf("actors of type %s: %w", name, err)
		}
		made = append(made, name)
	}
	return made, nil
}

// knowMethod reports whether a worker knows a method, and whether all that do, and live, have it as a reader. It
// returns ErrNotFound if calls of it should not wait for one.
func (c *Client) knowMethod(ctx context.Context, name, function string) (knows, reads bool, err error) {
	members, err := c.cluster.Workers(ctx)
	if err != nil {
		return false, false, err
	}
	others, read, change := map[string]bool{}, false, false
	for i := range members {
		m := &members[i]
		for _, f := range m.Functions {
			if f == function {
				reader := slices.Contains(m.Readers, f)
				knows, read, change = true, read || reader && m.Alive, change || !reader && m.Alive
			}
			if method, of := strings.CutPrefix(f, goPrefix+name+"."); of && m.Alive {
				others[method] = true
			}
		}
	}
	if knows {
		return true, read && !change, nil
	}
	if len(others) > 0 {
		known := slices.Sorted(maps.Keys(others))
		return false, false, fmt.Errorf("%s: %w: the workers know of actors of type %s: %.200s", function, ErrNotFound, name,
			strings.Join(known, ", "))
	}
	_, err = lanes.Of(c.cluster).Kind(ctx, actors.LaneKind(name))
	if errors.Is(err, ErrNotFound) {
		return false, false, fmt.Errorf("actors of type %s: %w: none has been called yet, and no worker knows %s: start one "+
			"that does, or correct the name", name, ErrNotFound, function)
	}
	return false, false, err
}
