package sharing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/socket"
	"github.com/futura-run/futura/internal/trust"
)

// recordFile lies in the directory of a store that is shared.
const recordFile = "sharing.json"

// maxRecord bounds what is read of it, in bytes.
const maxRecord = 1 << 20

// Record is what the owner of a store leaves for the processes of its user.
type Record struct {
	// PID is the owner's process, 0 if that has closed the store.
	PID int `json:"pid"`
	// Connection names the owner as kv.Traits do. It is empty if that has closed the store.
	Connection string `json:"connection,omitempty"`
	// Socket is the path of the socket at which the store is served.
	Socket string `json:"socket,omitempty"`
	// Clients are the names of the others that use the store.
	Clients []string `json:"clients,omitempty"`
}

// ReadRecord reads the record of the store in dir, and returns fs.ErrNotExist if there is none.
// One that other users may read or write is refused: it could lead anywhere.
func ReadRecord(dir string) (r Record, err error) {
	content, err := trust.ReadSecret(filepath.Join(dir, recordFile), maxRecord)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return Record{}, err
	}
	if r.Socket != "" && !belongs(r.Socket, dir) {
		r.Socket = usualSocket(dir)
	}
	return r, nil
}

// SocketOf returns the path of the socket of the store in dir: that of the record, or the usual one where the record
// has none, as that of an owner on a full disk.
func (r Record) SocketOf(dir string) string { return cmp.Or(r.Socket, usualSocket(dir)) }

// belongs reports whether a socket is that of the store in dir. The record of a directory that was
// copied or moved names another place, where the socket of another store may be.
func belongs(path, dir string) bool {
	place := filepath.Dir(path)
	if isPlace(place, dir) {
		return true
	}
	at, err := os.Stat(place)
	if err != nil {
		return false
	}
	store, err := os.Stat(dir)
	return err == nil && os.SameFile(at, store)
}

// Silent is the kv.ErrStoreInUse of a store whose owner takes connections, and so is alive, and has not answered for
// some time.
func Silent(owner Record, after time.Duration) error {
	after = after.Round(100 * time.Millisecond)
	if owner.PID == 0 { // a full disk took no record
		return fmt.Errorf("%w: the process that has it open is alive and has not answered for %v: if it was stopped, "+
			"continue it with kill -CONT, else end it", kv.ErrStoreInUse, after)
	}
	return fmt.Errorf("%w: process %d has it open, is alive and has not answered for %v: if it was stopped, continue it "+
		"with kill -CONT %[2]d, else end it", kv.ErrStoreInUse, owner.PID, after)
}

// InUse returns kv.ErrStoreInUse if a process serves the store in dir. The lock of the directory
// keeps others out as well, unless its file was removed on a file system that locks no directories. Exposed is that of
// embedded.Options: without it, the record in a directory that others may change is not read.
func InUse(dir string, exposed bool) error {
	if !exposed && trust.Directory(dir) != nil {
		return nil
	}
	record, err := ReadRecord(dir)
	if err != nil || record.Socket == "" {
		return nil
	}
	if answers, err := socket.Answers(record.Socket); err != nil || !answers {
		return nil
	}
	return fmt.Errorf("%w: %s: process %d serves it", kv.ErrStoreInUse, dir, record.PID)
}

// write replaces the record of the store in dir. A reader sees one or the other whole. Only the
// owner may call it.
func (r Record) write(dir string) error {
	content, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return trust.WriteSecret(filepath.Join(dir, recordFile), append(content, '\n'))
}
