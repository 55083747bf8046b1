// Package archive is the format of backup files: keys and values in order, with
// checksums over all of it.
//
// A file begins with the eight bytes "FUTURABK" and two bytes of version, big
// endian, which is 1. Frames follow:
//
//	length   4 bytes, big endian: of the payload, at most MaxFrame
//	kind     1 byte
//	payload
//	crc      4 bytes, big endian: CRC-32C of kind and payload
//
// The first frame is the head (kind 1), a JSON object: Head. Frames of items
// (kind 2) follow. An item is the length of the key and the key, the length of
// the value and the value; lengths are unsigned varints. Items are in the order
// of their keys. The last frame is the end (kind 3), a JSON object: End. It has
// the number of items, and the SHA-256 of the payloads of all frames before it.
// Nothing stands behind it.
//
// A file that was cut off, or changed in any place, is an error that says where;
// so is a file of a higher version. A Reader takes memory for one frame,
// whatever the file claims to hold.
package archive

import "errors"

// Version is the version of the format.
const Version = 1

// Limits of a file. Bytes.
const (
	// MaxFrame bounds the payload of a frame.
	MaxFrame = 1 << 20
	// MaxKey and MaxValue bound an item: a key of a store, with a byte before it.
	MaxKey   = 10_001
	MaxValue = 100_000
)

const (
	magic      = "FUTURABK"
	headLength = len(magic) + 2

	frameHead  = 1
	frameItems = 2
	frameEnd   = 3

	// fullFrame is how large a frame becomes before the next one begins.
	fullFrame = 256 << 10
)

// Conditions of a file.
var (
	// ErrNoBackup is returned when a file does not begin as a backup does.
	ErrNoBackup = errors.New("archive: not a backup of futura")
	// ErrNewer is returned when a file has a higher version of the format.
	ErrNewer = errors.New("archive: made by a newer version of futura; upgrade this one")
	// ErrTruncated is returned when a file ends before its last frame.
	ErrTruncated = errors.New("archive: the file was cut off")
	// ErrDamaged is returned when the bytes of a file are not those that were
	// written.
	ErrDamaged = errors.New("archive: the file is damaged")
	// ErrTooLarge is returned when an item exceeds the limits of a store, or a head that of a frame.
	ErrTooLarge = errors.New("archive: item is too large")
)

// Head says what a file holds.
type Head struct {
	// Cluster is the name of the cluster.
	Cluster string `json:"cluster"`
	// Futures is how many futures there were, by the cluster's counters.
	Futures int64 `json:"futures"`
	// CreatedAt is when the backup began, in milliseconds of Unix time.
	CreatedAt int64 `json:"created_at_ms"`
	// Rows are the prefixes of rows that belong to no cluster and are in the file, as fdbcli prints them. The keys
	// of such items begin with the byte FF, those of a cluster's items lack its prefix and begin with a smaller one.
	Rows []string `json:"rows,omitempty"`
}

// End closes a file.
type End struct {
	Items int64 `json:"items"`
	// SHA256 is over the payloads of all frames before, in hexadecimal.
	SHA256 string `json:"sha256"`
}
