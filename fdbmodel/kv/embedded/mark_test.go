package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/futura-run/futura/fdbmodel/kv"
	"github.com/futura-run/futura/internal/faultdisk"
)

const markPath = "store/" + markName

// content reads a file of a disk, nil if it is not there.
func content(t testing.TB, disk *faultdisk.Disk, name string) []byte {
	f, err := disk.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	return b
}

func overwrite(t testing.TB, disk *faultdisk.Disk, name string, at int, b []byte) {
	f, err := disk.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.WriteAt(b, int64(at))
	require.NoError(t, errors.Join(err, f.Close()))
}

// lastLog returns the last file of the log of a disk, empty if there is none.
func lastLog(t testing.TB, disk *faultdisk.Disk) string {
	m, err := directory{fs: disk, path: "store"}.manifest()
	require.NoError(t, err)
	if m == nil || len(m.Segments) == 0 {
		return ""
	}
	return "store/" + segmentName(m.Segments[len(m.Segments)-1].File)
}

// cutLog takes the end of the last log away, and leaves zeros, which end a log as
// the end of a file does, or noise.
func cutLog(t testing.TB, disk *faultdisk.Disk, random *rand.Rand) (what string) {
	name := lastLog(t, disk)
	if name == "" {
		return ""
	}
	b := content(t, disk, name)
	end := leftover(b)
	at := max(0, end-random.IntN(1<<(1+random.IntN(14))))
	rest := make([]byte, len(b)-at)
	if random.IntN(2) == 0 {
		for i := range rest {
			rest[i] = byte(random.Uint32())
		}
	}
	overwrite(t, disk, name, at, rest)
	return fmt.Sprintf("%s, %d bytes, cut at %d", name, end, at)
}

var acceptable = regexp.MustCompile(`accept-loss=(\d+)`)

// TestCutLogs cuts the last log off at any place, at any moment. After a kill no
// acknowledged commit is missing without an error; after a power failure, which
// may take the mark with it, what is left is at least what there was after some
// commit. Whatever is given up as the error says opens, and stays as it is.
func TestCutLogs(t *testing.T) {
	t.Parallel()
	steps, every := 60, 7
	if os.Getenv("FUTURA_LONG") == "1" {
		steps, every = 120, 1
	}
	history := crashHistory(t, steps)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	found, accepted, silent := 0, 0, 0
	for name, o := range lives() {
		l, calls := newLife(o, seed), 0
		judge := func(image *faultdisk.Disk, least int, call faultdisk.Call) {
			what := fmt.Sprintf("%s, %v, %s", name, call, cutLog(t, image, l.random))
			s, err := l.open(image)
			if err == nil {
				step, err := stepOf(s, history)
				require.NoError(t, err, what)
				require.GreaterOrEqual(t, step, least, what)
				silent++
				return
			}
			found++
			require.ErrorIs(t, err, kv.ErrCorrupt, what)
			require.ErrorContains(t, err, "store/", what)
			number := acceptable.FindStringSubmatch(err.Error())
			if number == nil {
				return
			}
			accepted++
			accept := *l
			accept.options.AcceptLoss, err = strconv.ParseUint(number[1], 10, 64)
			require.NoError(t, err)
			s, err = accept.open(image)
			require.NoError(t, err, what)
			step, err := stepOf(s, history)
			require.NoError(t, err, what)
			require.NoError(t, s.Close())
			require.NoError(t, l.judge(image.Killed(), history, step), what)
		}
		l.disk.Before = func(call faultdisk.Call) error {
			if calls++; calls%every == 0 {
				judge(l.disk.Killed(), l.acked, call)
				judge(l.disk.Image(faultdisk.Losses()[l.random.IntN(len(faultdisk.Losses()))], l.random), 0, call)
			}
			return nil
		}
		require.NoError(t, l.run(steps))
	}
	t.Logf("%d cuts were found, %d of them could be accepted; %d did no harm or were attested by nothing", found, accepted,
		silent)
	require.NotZero(t, accepted)
	require.NotZero(t, silent)
}

// killedAfter returns the disk of a store that was killed after some steps.
func killedAfter(t testing.TB, steps int) *faultdisk.Disk {
	disk := faultdisk.New()
	s := open(t, "store", Options{FS: disk, Inline: true})
	for i := 1; i <= steps; i++ {
		tx := s.Begin(kv.Options{})
		crashStep(tx, i)
		commit(t, tx)
	}
	return disk.Killed()
}

// TestMarks opens a log of ten commits, whole and with only five of them, with any
// mark: only one that tells what the log lacks changes anything.
func TestMarks(t *testing.T) {
	t.Parallel()
	const steps = 10
	history := crashHistory(t, steps)
	late := killedAfter(t, steps)
	right := content(t, late, markPath)
	require.NotEmpty(t, right)
	log := content(t, late, lastLog(t, late))
	short := leftover(content(t, killedAfter(t, steps/2), lastLog(t, late)))
	id, err := (&manifest{Store: fmt.Sprintf("%x", right[:len(storeID{})])}).id()
	require.NoError(t, err)
	h, ok := decodeHeader(right, id)
	require.True(t, ok)
	encoded := func(m mark) []byte {
		b := m.encode(id)
		return b[:]
	}
	for what, c := range map[string]struct {
		mark []byte
		lost bool
	}{
		"none":                    {mark: make([]byte, len(right))},
		"torn":                    {mark: append(slices.Clone(right[:20]), make([]byte, len(right)-20)...)},
		"of another store":        {mark: content(t, killedAfter(t, steps), markPath)},
		"of an earlier segment":   {mark: encoded(mark{segment: h.seq - 1, known: attestation{seq: h.durable}})},
		"old":                     {mark: encoded(mark{segment: h.seq, known: attestation{seq: 2}})},
		"right":                   {mark: right, lost: true},
		"of a later segment":      {mark: encoded(mark{segment: h.seq + 5, known: attestation{seq: h.durable}}), lost: true},
		"of before the last sync": {mark: encoded(mark{segment: h.seq, known: attestation{seq: h.durable - 1}}), lost: true},
	} {
		whole := late.Killed()
		overwrite(t, whole, markPath, 0, c.mark)
		rows := contents(t, open(t, "store", Options{FS: whole, Inline: true}))
		require.Equal(t, history[steps], rows, what)

		cut := late.Killed()
		overwrite(t, cut, markPath, 0, c.mark)
		overwrite(t, cut, lastLog(t, cut), short, make([]byte, len(log)-short))
		s, err := Open(context.Background(), "store", Options{FS: cut, Inline: true})
		if c.lost {
			require.ErrorIs(t, err, kv.ErrCorrupt, what)
			require.ErrorContains(t, err, strings.TrimPrefix(lastLog(t, cut), "store/"), what)
			require.ErrorContains(t, err, "restore a backup", what)
			continue
		}
		require.NoError(t, err, what)
		require.Equal(t, history[steps/2], contents(t, s), what)
		require.NoError(t, s.Close())
	}
}

// TestAcceptedLoss goes on without what is missing, once: the next opening asks
// nothing, and the next loss is an error again.
func TestAcceptedLoss(t *testing.T) {
	t.Parallel()
	const steps = 10
	history := crashHistory(t, steps)
	disk := killedAfter(t, steps)
	whole := open(t, "store", Options{FS: disk.Killed(), Inline: true})
	name := lastLog(t, disk)
	end := leftover(content(t, disk, name))
	short := leftover(content(t, killedAfter(t, steps/2), name))
	overwrite(t, disk, name, short, make([]byte, end-short))

	reopen := func(accept uint64) (*Store, error) {
		return Open(context.Background(), "store", Options{FS: disk, Inline: true, AcceptLoss: accept})
	}
	_, err := reopen(0)
	require.ErrorIs(t, err, kv.ErrCorrupt)
	missing, err := strconv.ParseUint(acceptable.FindStringSubmatch(err.Error())[1], 10, 64)
	require.NoError(t, err)
	before := files(t, disk)
	for _, wrong := range []uint64{missing - 1, missing + 1} {
		_, err = reopen(wrong)
		require.ErrorIs(t, err, kv.ErrCorrupt)
	}
	require.Equal(t, before, files(t, disk), "an opening that finds damage changes nothing")
	s, err := reopen(missing)
	require.NoError(t, err)
	require.Equal(t, history[steps/2], contents(t, s))
	require.GreaterOrEqual(t, s.opened, whole.opened, "versions of lost commits are not given out again")
	write(t, s, "a", "1")

	disk = disk.Killed()
	s, err = reopen(0)
	require.NoError(t, err)
	write(t, s, "b", "1")
	name = lastLog(t, disk)
	end = leftover(content(t, disk, name))
	disk = disk.Killed()
	overwrite(t, disk, name, end-3, make([]byte, 3))
	_, err = reopen(missing)
	require.ErrorIs(t, err, kv.ErrCorrupt, "a name that was left in place accepts no other loss")
}

// TestLossUnderACheckpoint can't be accepted: the checkpoint lacks what was written again in the
// commits that the log lost.
func TestLossUnderACheckpoint(t *testing.T) {
	t.Parallel()
	disk := faultdisk.New()
	s := open(t, "store", Options{FS: disk, Inline: true})
	write(t, s, "a", "1")
	disk.Before = func(call faultdisk.Call) error {
		if call.Op == "create" && strings.HasSuffix(call.Path, rowsSuffix) {
			write(t, s, "b", "meanwhile")
		}
		return nil
	}
	require.NoError(t, s.Checkpoint(context.Background()))
	disk.Before = nil
	write(t, s, "c", "1")
	disk = disk.Killed()
	b := content(t, disk, lastLog(t, disk))
	overwrite(t, disk, lastLog(t, disk), headSize, make([]byte, len(b)-headSize))
	overwrite(t, disk, markPath, 0, make([]byte, headerSize))
	for accept := range uint64(8) {
		_, err := Open(context.Background(), "store", Options{FS: disk, Inline: true, AcceptLoss: accept})
		require.ErrorIs(t, err, kv.ErrCorrupt)
		require.ErrorContains(t, err, "the last checkpoint counts on them")
	}
}

// TestMarkThatCantBeWritten is a matter of a warning: the log is as safe.
func TestMarkThatCantBeWritten(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create", "open", "write"} {
		disk, begun := faultdisk.New(), false
		disk.Before = func(call faultdisk.Call) error {
			if call.Path == markPath && call.Op == op && begun {
				return errors.New("no mark")
			}
			return nil
		}
		s := open(t, "store", Options{FS: disk, Inline: true})
		begun = true
		write(t, s, "a", "1")
		write(t, s, "b", "1")
		require.NoError(t, s.Err())
		disk = disk.Killed()
		require.Equal(t, []byte("1"), read(t, open(t, "store", Options{FS: disk}), "b"))
	}
}
