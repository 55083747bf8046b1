package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/batch/rest"
	"github.com/futura-run/futura/protocol"
	"github.com/futura-run/futura/protocol/p2p"
	"github.com/futura-run/futura/protocol/peerhead"
)

// TestPeersFlags refuses flags that contradict each other or would be ignored, and addresses that everyone reaches.
func TestPeersFlags(t *testing.T) {
	t.Parallel()
	check := func(text string) error {
		var f peersFlags
		flags := pflag.NewFlagSet("head", pflag.ContinueOnError)
		f.add(flags)
		require.NoError(t, flags.Parse(strings.Fields(text)), text)
		return f.check()
	}
	for _, flag := range []string{
		"--b7s-workers", "--b7s-strands", "--peer-clients", "--allow-peer x", "--deny-peer x", "--any-peer", "--peer-key k",
		"--discover g", "--verify 2/3", "--keep-lost 5m", "--manifest-listen :0", "--manifest-url http://x",
	} {
		name, _, _ := strings.Cut(flag, " ")
		require.ErrorContains(t, check(flag), name+" needs --peers or --boot-node")
	}
	for _, flag := range []string{"--b7s-strands", "--manifest-listen :0", "--manifest-url http://x"} {
		name, _, _ := strings.Cut(flag, " ")
		require.ErrorContains(t, check("--any-peer --peers /ip4/127.0.0.1/tcp/1 "+flag), name+" needs --b7s-workers")
		require.NoError(t, check("--any-peer --b7s-workers --peers /ip4/127.0.0.1/tcp/1 "+flag))
	}
	for text, says := range map[string]string{
		"--peers /ip4/0.0.0.0/tcp/1":                               "everyone on this network",
		"--peers /ip4/127.0.0.1/tcp/1 --peers /ip4/10.0.0.1/tcp/1": "every user of this machine",
		"--peers /dns4/example.com/tcp/1":                          "everyone on this network",
		"--peers x":                                                "everyone on this network",
		"--peers /ip6/::1/tcp/1 --peer-clients":                    "every user of this machine",
		"--peers /ip4/127.0.0.1/tcp/1 --any-peer --allow-peer x":   "exclude each other",
		"--boot-node /ip4/10.0.0.1/tcp/1/p2p/x --discover g":       "--discover needs --peers",
	} {
		require.ErrorContains(t, check(text), says, text)
	}
	for _, text := range []string{
		"", "--any-peer=false --keep-lost 1h", "--peers /ip4/127.0.0.1/tcp/1 --peers /ip6/::1/tcp/1 --any-peer",
		"--peers /ip4/127.0.0.1/tcp/1 --allow-peer x --deny-peer y --verify 2/3 --keep-lost 5m --discover g --peer-key k",
		"--peers /ip4/0.0.0.0/tcp/1 --any-peer", "--peers /ip4/0.0.0.0/tcp/1 --allow-peer x",
		"--boot-node /ip4/10.0.0.1/tcp/1/p2p/x",
	} {
		require.NoError(t, check(text), text)
	}
}

func TestVerifyFlag(t *testing.T) {
	t.Parallel()
	f := peersFlags{verify: "2/3"}
	v, err := f.verification()
	require.NoError(t, err)
	require.Equal(t, peerhead.Verify{Peers: 3, Agree: 2}, v)
	for _, text := range []string{"2", "1/2", "3/2", "0/1", "-1/1", "2/3x", "2/3/4", "a/b"} {
		f.verify = text
		_, err := f.verification()
		require.ErrorContains(t, err, "--verify", text)
	}
}

// askByMessage sends a message as a client, and returns the head's answer.
func askByMessage(t *testing.T, address string, m protocol.Message) *protocol.ExecuteBatchResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	host, err := p2p.Open(ctx, p2p.Options{Listen: []string{}})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	answers := make(chan protocol.Message, 1)
	host.OnMessage(func(_ context.Context, _ p2p.PeerID, message []byte, _ bool) {
		if m, err := protocol.Decode(message); err == nil {
			answers <- m
		}
	})
	require.NoError(t, host.Start())
	head, err := host.Connect(ctx, address)
	require.NoError(t, err)
	data, err := protocol.Encode(m, protocol.DialectChunk)
	require.NoError(t, err)
	require.NoError(t, host.Send(ctx, head, data))
	select {
	case m := <-answers:
		answer, ok := m.(*protocol.ExecuteBatchResponse)
		require.True(t, ok, "%T", m)
		return answer
	case <-ctx.Done():
		require.FailNow(t, "no answer")
		return nil
	}
}

// TestAClientAsksByMessage runs a batch that a libp2p client asks a head for, on its own
// worker, and has bad requests answered.
func TestAClientAsksByMessage(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	e, _, _ := startDev(t, "--store", s.store, "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0", "--peer-clients")
	require.NotEmpty(t, e.Peers)
	status, answer := ask(t, &e, "POST", "/api/v1/functions/install?function_id=echo&method=echo.wasm", e.Token,
		string(echoModule(t)))
	require.Equal(t, 200, status, answer)
	request := protocol.ExecuteBatch{
		Template:  protocol.Template{FunctionID: "echo", Method: "echo.wasm", Config: protocol.Config{Nodes: 1}},
		Arguments: [][]string{{"one"}, {"two"}, {"one"}}, MaxAttempts: 1,
	}
	got := askByMessage(t, e.Peers[0], &request)
	require.Equal(t, protocol.CodeOK, got.Code, got.Message)
	require.NotEmpty(t, got.RequestID)
	var outputs []string
	for _, chunk := range got.Chunks {
		for _, result := range chunk.Results {
			require.True(t, result.OK())
			outputs = append(outputs, result.Result.Stdout)
		}
	}
	require.ElementsMatch(t, []string{"one", "two", "one"}, outputs)

	unknown := request
	unknown.Template.FunctionID = "nothing"
	got = askByMessage(t, e.Peers[0], &unknown)
	require.NotEqual(t, protocol.CodeOK, got.Code)
	require.NotEmpty(t, got.Message)
	topic := request
	topic.Topic = "nobody serves this"
	got = askByMessage(t, e.Peers[0], &topic)
	require.Equal(t, protocol.CodeInvalid, got.Code)
	require.Contains(t, got.Message, "topic")
}

// TestStatesOfPeers are those of the table.
func TestStatesOfPeers(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	for want, p := range map[string]rest.Peer{
		"here": {Connected: true}, "away": {},
		"dropped": {Connected: true, Reason: "it is silent"}, "lost since 05:06:07": {LostAt: &at},
		"left since 05:06:07": {LostAt: &at, Left: true},
	} {
		require.Equal(t, want, peerState(&p, at.Add(time.Hour)))
	}
	require.Equal(t, "lost since Mar  4 05:06", peerState(&rest.Peer{LostAt: &at}, at.Add(20*time.Hour)))
}

// TestAClientNeedsNoTokenOfANamedOne asks a head that knows named tokens alone.
func TestAClientNeedsNoTokenOfANamedOne(t *testing.T) {
	t.Parallel()
	store, tokens, _ := storeWithReader(t)
	startDev(t, "--store", store)
	e, _, _ := startHead(t, "--store", store, "--tokens", tokens, "--any-peer", "--peers", "/ip4/127.0.0.1/tcp/0",
		"--peer-clients")
	require.Empty(t, e.Token)
	got := askByMessage(t, e.Peers[0], &protocol.ExecuteBatch{
		Topic: "nobody serves this", Template: protocol.Template{FunctionID: "f", Method: "m"}, Arguments: [][]string{{"a"}},
	})
	require.Equal(t, protocol.CodeInvalid, got.Code, got.Message)
	require.Contains(t, got.Message, "topic")
}
