package embedded

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/clock"
)

// Options of a store. The zero value is right for production.
type Options struct {
	// FS is the file system that the directory is in. Defaults to the
	// machine's, where only this user may read the files.
	FS vfs.FS

	// Exposed accepts a directory that other users own or can write, and creates
	// files with the modes that the process's umask leaves. Defaults to false:
	// Open returns kv.ErrExposed.
	Exposed bool

	// Only is the id of the one store that Open may open, as ID returns it: Open makes none then, and
	// returns kv.ErrUnavailable where there is none or another one. Defaults to any.
	Only string

	// Clock bounds the life of transactions. Defaults to the machine's.
	Clock clock.Clock

	// SyncOff makes commits visible and acknowledged at once and syncs them in
	// the background, every SyncInterval. A crash of the process or the machine
	// loses the last ones, from some point on, and nothing before it. Defaults
	// to false.
	SyncOff bool

	// SyncInterval is how long a commit may stay unsynced with SyncOff.
	// Defaults to 10 ms.
	SyncInterval time.Duration

	// Linger is how long a NoSync commit waits for a sync that another commit
	// asks for, or a transaction that conflicted with it, before it gets one of its
	// own. A sync that begins for it alone holds up the commit that follows it, such
	// as the end of what was claimed. Defaults to 10 ms.
	Linger time.Duration

	// AcceptLoss is the record of the log that Open may go on without, and without
	// all after it, although they were synced: the error of the opening that found
	// them missing names it. What they committed is gone for good. Defaults to 0:
	// Open returns kv.ErrCorrupt.
	AcceptLoss uint64

	// Inline makes the store run without goroutines: Commit does all of its
	// work in the caller, including the sync and checkpoints. It is meant for
	// simulations, which then run the same way each time. With SyncOff, syncs
	// come only with new segments, checkpoints and Close. Transactions take no
	// turns: one goroutine would wait for itself. Defaults to false.
	Inline bool

	// TxLifetime is how long a transaction may live from its first read.
	// Defaults to kv.TxLifetime.
	TxLifetime time.Duration

	// HistoryVersions is how many overwritten or deleted values are kept for
	// SetReadVersion although no running transaction can read them. They are
	// kept for TxLifetime at most. Up to 64 times as many are kept for 50 ms, so
	// that a transaction can read at a version that was just committed. A
	// checkpoint drops all that are older than that; with Inline, all but as many
	// versions. Defaults to 1,024.
	HistoryVersions int

	// SegmentSize is the size in bytes at which a log file is followed by
	// another. Defaults to 64 MiB.
	SegmentSize int64

	// CheckpointBytes is the size in bytes of the log from which on a
	// checkpoint is written. Meanwhile commits are slowed down, so that the log has
	// at most 2.1 times this size, and 128 MiB, as long as checkpoints succeed and
	// no transaction reads at a version from before. Defaults to 256 MiB, or an eighth
	// of Memory if that is less.
	CheckpointBytes int64

	// LargeValue is the size in bytes from which on a value lies in no memory
	// once a checkpoint has it, and is read from there. Of those that only the
	// log has, a 128th part of CheckpointBytes lies in memory, the newest; the
	// rest is read from the log. A checkpoint is also written when the log has an
	// eighth of CheckpointBytes of them. Defaults to 4 KiB.
	LargeValue int

	// Memory is about how many bytes a store in a directory may take of the process's memory.
	// Its rows may take two fifths of that, or three quarters less 512 MiB if that is more. What has
	// not been read or written for the longest time is left to the tables on disk by a
	// checkpoint, and is read there. The rest is for what commits write until then, as much as
	// the log may have, and what the collector leaves.
	// Defaults to a quarter of the memory that the process may have, and 256 MiB at least.
	Memory int64

	// Logger receives checkpoints, and what was found and passed over at the
	// opening. Errors are not logged but returned. Defaults to none.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.FS == nil && o.Exposed {
		o.FS = vfs.Default
	} else if o.FS == nil {
		o.FS = privateFS{vfs.Default}
	}
	if o.Clock == nil {
		o.Clock = clock.Real{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.SyncInterval = orDefault(o.SyncInterval, 10*time.Millisecond)
	o.Linger = orDefault(o.Linger, 10*time.Millisecond)
	o.TxLifetime = orDefault(o.TxLifetime, kv.TxLifetime)
	o.HistoryVersions = orDefault(o.HistoryVersions, 1024)
	o.LargeValue = orDefault(o.LargeValue, 4<<10)
	o.SegmentSize = orDefault(o.SegmentSize, 64<<20)
	if o.Memory <= 0 {
		o.Memory = max(systemMemory()/4, MemoryMin)
	}
	o.CheckpointBytes = orDefault(o.CheckpointBytes, min(256<<20, o.Memory/8))
	return o
}

// rowMemory is how many bytes rows may take. What else there is grows less than they do.
func (o *Options) rowMemory() int64 { return max(o.Memory/5*2, o.Memory/4*3-512<<20) }

// heapPages is how many pages of rows are of the collector's heap.
func (o *Options) heapPages() int { return int(min(heapPages, o.Memory/8/chunkMax)) }

// backlog is how many bytes of commits may wait for the disk.
func (o *Options) backlog() int64 {
	return min(backlogBytes, max(o.Memory/backlogFraction, backlogMin))
}

func orDefault[T int | int64 | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}
