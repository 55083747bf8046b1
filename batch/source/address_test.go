package source

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPublicAddresses(t *testing.T) {
	t.Parallel()
	for text, public := range map[string]bool{
		"1.1.1.1": true, "8.8.8.8": true, "93.184.215.14": true, "172.32.0.1": true, "2606:4700::1111": true,
		"2a00:1450:4001::1": true, "::ffff:8.8.8.8": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "100.127.255.255": false,
		"127.0.0.1": false, "127.255.0.1": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.0.0.1": false, "192.0.2.1": false, "192.88.99.1": false, "192.168.1.1": false, "198.18.0.1": false,
		"198.19.255.255": false, "198.51.100.1": false, "203.0.113.1": false, "224.0.0.1": false, "240.0.0.1": false,
		"255.255.255.255": false,
		"::":              false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false,
		"::127.0.0.1": false, "::10.0.0.1": false, "::ffff:0:127.0.0.1": false, // compatible, translated
		"64:ff9b::7f00:1": false, "64:ff9b:1::a00:1": false, "2002:7f00:1::": false, // NAT64, 6to4
		"2001:0:7f00:1::": false, "2001:2::1": false, "2001:10::1": false, "2001:20::1": false, "2001:db8::1": false,
		"3fff::1": false, "100::1": false, "5f00::1": false, "fc00::1": false, "fd12::1": false, "fe80::1": false,
		"fec0::1": false, "feff::1": false, "ff02::1": false, "fe80::1%eth0": false, "2606:4700::1%eth0": false,
		"2606:4700::5efe:127.0.0.1": false, "2606:4700::200:5efe:10.0.0.1": false, // ISATAP
		"4000::1": false, "1::1": false,
	} {
		require.Equal(t, public, isPublic(netip.MustParseAddr(text)), text)
	}
	require.False(t, isPublic(netip.Addr{}))
}

// TestNoFormOfAPrivateAddressIsPublic embeds private addresses in every form of
// IPv6 that stands for one of IPv4.
func TestNoFormOfAPrivateAddressIsPublic(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		private := [4]byte{10, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())}
		if random.IntN(2) == 0 {
			private = [4]byte{127, private[1], private[2], private[3]}
		}
		last := func(prefix string) netip.Addr {
			b := netip.MustParseAddr(prefix).As16()
			copy(b[12:], private[:])
			return netip.AddrFrom16(b)
		}
		sixToFour := netip.MustParseAddr("2002::").As16()
		copy(sixToFour[2:], private[:])
		for _, a := range []netip.Addr{
			netip.AddrFrom4(private), last("::ffff:0:0"), last("::"), last("::ffff:0:0:0"), last("64:ff9b::"),
			last("64:ff9b:1::"), last("2606::5efe:0:0"), last("2606::200:5efe:0:0"), last("2001::"),
			netip.AddrFrom16(sixToFour),
		} {
			require.False(t, isPublic(a), a)
		}
	}
}
