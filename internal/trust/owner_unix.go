//go:build unix

package trust

import (
	"os"
	"syscall"
)

func ownerOf(info os.FileInfo) owner {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return owner{trusted: true}
	}
	me := uint32(os.Geteuid())
	found := owner{id: stat.Uid, me: stat.Uid == me, foreign: 0o077}
	found.trusted = found.me || stat.Uid == 0
	if stat.Gid == uint32(os.Getegid()) && stat.Gid == me {
		found.foreign = 0o007 // a group of the user alone
	}
	return found
}
