package peerhead

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/futura-run/futura/fdbmodel/layout"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/workers"
)

// Verify is how peers check each other: an item runs on Peers of them, and counts once
// Agree say the same: exit code, output, and whether and how it failed, sleeps, or is to be
// repeated. Of the waits that they ask for the shortest counts; a message and standard error
// are those of one of them. The others have 10 s more to answer, so that a slow peer that
// says something else is counted. Agree is more than half of Peers, which are at most 16. The
// zero value checks nothing.
type Verify struct {
	Peers, Agree int
}

func (v Verify) on() bool { return v.Peers > 1 }

func (v Verify) check() error {
	if v == (Verify{}) || 1 <= v.Agree && v.Agree <= v.Peers && 2*v.Agree > v.Peers && v.Peers <= maxVerify {
		return nil
	}
	return fmt.Errorf("peerhead: Verify of %d that agree of %d peers: use more than half of them, and at most %d peers",
		v.Agree, v.Peers, maxVerify)
}

// maxVerify bounds the peers that run one item.
const maxVerify = 16

// errFewPeers rejects what too few peers can check.
var errFewPeers = errors.New("too few peers can run it for its results to be compared")

// digest is what has to agree of an outcome.
type digest [sha256.Size]byte

// digestOf covers all that decides what becomes of the attempt, but how long it waits: two
// peers may tell that by different clocks.
func digestOf(out *workers.RemoteOutcome) digest {
	content, size := sha256.Sum256(out.Value), int64(len(out.Value))
	if v, large := out.Large.(*blobValue); large {
		var err error
		if content, err = p2p.ParseBlobID(v.held[0].blob.ID); err != nil {
			content = sha256.Sum256([]byte(v.held[0].blob.ID)) // it is not fetched either
		}
		size = v.Size()
	}
	return sha256.Sum256(fmt.Appendf(nil, "%d %q %t %t %t %d %x", out.ExitCode, out.Kind, out.Permanent,
		out.RetryIn != nil, out.Snooze != nil, size, content))
}

// vote is what one peer says of an item.
type vote struct {
	peer *peer
	end  ending
}

// maxAsked bounds, in Verify.Peers, how many peers are asked about one attempt: those that don't answer are replaced.
const maxAsked = 2

// runVerified runs an attempt on several peers, this one first, and returns what enough of
// them agree on. Those that say something else are remembered. Another peer is asked in place of one
// that is lost. If too few can agree, the attempt has failed; if those that are missing could
// decide it, it is rejected, and waits for as many peers as are to run it.
func (m *member) runVerified(ctx context.Context, c workers.RemoteCall) (workers.RemoteOutcome, error) {
	h := m.peer.head
	v := h.options.Verify
	voters := append([]*member{m}, h.others([]*member{m}, c.Function, v.Peers-1)...)
	if !h.undecided.mayDecide(c.ID, v, voters) {
		return workers.RemoteOutcome{}, errFewPeers
	}
	voting, stop := context.WithCancel(context.WithoutCancel(ctx))
	bound := context.AfterFunc(ctx, stop)
	votes := make(chan vote, maxAsked*v.Peers)
	ask := func(voters []*member) {
		for _, voter := range voters {
			go func() {
				out, err := voter.run(voting, c, ctx.Done())
				votes <- vote{voter.peer, ending{out, err}}
			}()
		}
	}
	ask(voters)
	var heard []vote
	count, most := map[digest]int{}, 0
	for left := len(voters); left > 0; {
		one := <-votes
		left--
		if ctx.Err() != nil {
			return workers.RemoteOutcome{}, context.Cause(ctx)
		}
		if one.end.err != nil {
			instead := h.others(voters, c.Function, min(1, maxAsked*v.Peers-len(voters)))
			voters, left = append(voters, instead...), left+len(instead)
			ask(instead)
			continue
		}
		d := digestOf(&one.end.out)
		heard = append(heard, one)
		count[d]++
		if most = max(most, count[d]); most >= v.Agree {
			h.undecided.forget(c.ID)
			b := ballot{d, c.ID, c.Attempt}
			h.noteDissent(heard, b)
			if bound() {
				h.recruits.Go(func() { m.hearOut(votes, left, b, stop) })
			}
			return agreed(heard, d), nil
		}
	}
	stop()
	if most+v.Peers-len(heard) >= v.Agree {
		h.undecided.note(c.ID, heard)
		return workers.RemoteOutcome{}, errFewPeers
	}
	h.undecided.forget(c.ID)
	for _, one := range heard {
		one.peer.disagreed.Add(1)
		one.peer.fault(1)
	}
	h.rare.Warn("peers disagree about an item", "future", c.ID, "attempt", c.Attempt, "peers", len(heard))
	return workers.RemoteOutcome{Kind: layout.KindError, Message: fmt.Sprintf(
		"%d peers ran it, and no %d of them agree on how it ended", len(heard), v.Agree)}, nil
}

// undecided are futures about which too few peers answered to decide, with those that did.
type undecided struct {
	mu  sync.Mutex
	ids map[layout.ID][]PeerID
}

// maxUndecided is how many are remembered: one that is forgotten may be run by too few once more.
const maxUndecided = 10_000

func (u *undecided) note(id layout.ID, heard []vote) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil || len(u.ids) == maxUndecided {
		u.ids = map[layout.ID][]PeerID{}
	}
	peers := make([]PeerID, len(heard))
	for i := range heard {
		peers[i] = heard[i].peer.id
	}
	u.ids[id] = peers
}

func (u *undecided) forget(id layout.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.ids, id)
}

// mayDecide reports whether peers are enough for a future to be run: as many as have to agree. Of one that could not be
// decided, all, or one among them that has not answered yet: the same ones would say the same again.
func (u *undecided) mayDecide(id layout.ID, v Verify, voters []*member) bool {
	u.mu.Lock()
	heard, noted := u.ids[id]
	u.mu.Unlock()
	isNew := func(voter *member) bool { return !slices.Contains(heard, voter.peer.id) }
	return len(voters) >= v.Peers || len(voters) >= v.Agree && (!noted || slices.ContainsFunc(voters, isNew))
}

// lateVotes is for how long those who have not answered are heard when others have agreed.
const lateVotes = 10 * time.Second

// ballot is what was agreed on.
type ballot struct {
	agreed  digest
	future  layout.ID
	attempt int
}

// hearOut hears the votes that are left for a while, since a slow peer may lie too, and has
// the rest stop then.
func (m *member) hearOut(votes <-chan vote, left int, b ballot, stop func()) {
	defer stop()
	h := m.peer.head
	timer := h.clock.At(h.clock.Now().Add(lateVotes))
	defer timer.Stop()
	for ; left > 0; left-- {
		select {
		case one := <-votes:
			if one.end.err == nil {
				h.noteDissent([]vote{one}, b)
			}
		case <-timer.C():
			return
		case <-m.ctx.Done():
			return
		}
	}
}

// agreed returns the outcome that several peers agree on: that of the first of them, with the
// shortest waits of all. A value that is here is preferred to one that all of them have.
func agreed(heard []vote, on digest) workers.RemoteOutcome {
	var same []workers.RemoteOutcome
	for _, one := range heard {
		if digestOf(&one.end.out) == on {
			same = append(same, one.end.out)
		}
	}
	out := same[max(0, slices.IndexFunc(same, func(o workers.RemoteOutcome) bool { return o.Large == nil }))]
	var all []held
	for _, o := range same {
		out.Snooze, out.RetryIn = shorter(out.Snooze, o.Snooze), shorter(out.RetryIn, o.RetryIn)
		if v, large := o.Large.(*blobValue); large {
			all = append(all, v.held...)
		}
	}
	if v, large := out.Large.(*blobValue); large {
		out.Large = &blobValue{v.head, v.at, all}
	}
	return out
}

// shorter returns the shorter of two waits. Both are nil, or neither is.
func shorter(a, b *time.Duration) *time.Duration {
	if a == nil || *a < *b {
		return a
	}
	return b
}

// noteDissent remembers the peers that said something else than what counts.
func (h *Head) noteDissent(heard []vote, b ballot) {
	for _, one := range heard {
		if digestOf(&one.end.out) != b.agreed {
			one.peer.disagreed.Add(1)
			one.peer.fault(dissent)
			h.rare.Warn("a peer disagrees with others about an item", "peer", one.peer.id,
				"future", b.future, "attempt", b.attempt)
		}
	}
}

// others returns up to n members of further peers that can run a function, those with the
// highest rank, in a random order among equals.
func (h *Head) others(than []*member, function string, n int) []*member {
	var able []*member
	ranks, now := map[*member]float64{}, h.clock.Now()
	for _, p := range h.all() {
		m := p.membership()
		asked := func(voter *member) bool { return voter.peer.id == p.id } // maybe in an earlier membership
		if m == nil || slices.ContainsFunc(than, asked) || !p.isConnected() || !m.runs(function) {
			continue
		}
		able = append(able, m)
		ranks[m] = m.rank(now)
	}
	rand.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
	slices.SortStableFunc(able, func(a, b *member) int { return cmp.Compare(ranks[b], ranks[a]) })
	return able[:min(n, len(able))]
}
