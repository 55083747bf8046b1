package attack_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/internal/attack"
	"github.com/futura-run/futura/protocol/p2p"
)

// TestAttacksOfPeers strikes a head that everyone may join with what hostile peers and clients over libp2p send.
func TestAttacksOfPeers(t *testing.T) {
	args := []string{"--peers", "/ip4/127.0.0.1/tcp/0", "--any-peer", "--peer-clients"}
	quiet, attacked := newSite(t, args...), newSite(t, args...)
	require.NotEmpty(t, attacked.process.Endpoint.Peers)
	target := &attack.Target{Peers: attacked.process.Endpoint.Peers[0]}
	for _, a := range []struct {
		name        string
		strike      attack.Attack
		short, long int
	}{
		{"gossip", attack.Gossip, 2000, 100_000},
		{"messages", attack.Messages, 1000, 50_000},
		{"members", attack.Members, 0, 1000}, // in virtual time: package peerhead
		{"batches", attack.Batches, 100, 2000},
	} {
		size := a.short
		if long() {
			size = a.long
		}
		if size == 0 {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			strike(t, quiet, attacked, bound, func(ctx context.Context) (func(), error) {
				return a.strike(ctx, target, size)
			})
		})
	}
}

// TestSeveralBadPeersAtOnce has workers that don't work join a head, beside its honest worker and a client that submits
// one future, and then many, again and again: each begins at the honest worker within a second after it could.
func TestSeveralBadPeersAtOnce(t *testing.T) {
	args := []string{"--peers", "/ip4/127.0.0.1/tcp/0", "--any-peer"}
	quiet, attacked := newSite(t, args...), newSite(t, args...)
	quiet.crowd()
	attacked.crowd()
	target := &attack.Target{Peers: attacked.process.Endpoint.Peers[0]}
	sets := 1
	if long() {
		sets = 3
	}
	strike(t, quiet, attacked, bound, func(ctx context.Context) (func(), error) {
		return attack.BadPeers(ctx, target, sets)
	})
}

// crowd has a bystander that submits many futures at once take the place of the present one.
func (s *site) crowd() {
	const many = 50
	s.bystander.Stop()
	s.bystander = attack.NewBystander(attack.Crowd(s.process.Endpoint.URL, s.tokens["bystander"], many))
	s.Cleanup(s.bystander.Stop)
	s.bystander.Go(1)
}

// peerOf starts a worker that serves the site's head, and others by their addresses, and has a bystander whose futures
// it alone may run.
func peerOf(t *testing.T, heads ...string) *site {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "peer.key")
	content, err := p2p.LoadKey(key)
	require.NoError(t, err)
	id, err := p2p.KeyID(content)
	require.NoError(t, err)
	head := newSite(t, "--peers", "/ip4/127.0.0.1/tcp/0", "--allow-peer", string(id))
	args := []string{"worker", "--json", "--slots", "4", "--label", "place=peer", "--peer-key", key,
		"--head", head.process.Endpoint.Peers[0]}
	for _, other := range heads {
		args = append(args, "--head", other)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s := &site{T: t}
	s.process, err = attack.Start(ctx, attack.Options{Command: command, Dir: dir, Descriptors: descriptors, Args: args})
	require.NoError(t, err)
	t.Cleanup(s.process.Kill)
	s.bystander = attack.NewBystander(attack.Labelled(head.process.Endpoint.URL, head.tokens["bystander"]), func() {})
	t.Cleanup(s.bystander.Stop)
	s.bystander.Go(1)
	_, err = s.bystander.Take()
	require.NoError(t, err)
	return s
}

// TestAFalseHead has a worker serve a head that deceives it, beside an honest one.
func TestAFalseHead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	liar, err := attack.NewFalseHead(ctx)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, liar.Close()) })
	quiet, attacked := peerOf(t), peerOf(t, liar.Address())
	size := 500
	if long() {
		size = 50_000
	}
	strike(t, quiet, attacked, bound, func(ctx context.Context) (func(), error) {
		return liar.Orders(ctx, &attack.Target{}, size)
	})
}
