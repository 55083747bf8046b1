package faultdisk

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// Loss is what a power failure leaves of what was not synced.
type Loss int

// The kinds of loss.
const (
	// All leaves only what was synced.
	All Loss = iota
	// None leaves everything, in the order of the calls.
	None
	// Some leaves any of the sectors and names, at random.
	Some
	// Torn is Some, with sectors that are written in part.
	Torn
	// Hollow leaves the names and sizes of files, and zeros in place of what was
	// not synced.
	Hollow
)

// Losses returns every kind of loss.
func Losses() []Loss { return []Loss{All, None, Some, Torn, Hollow} }

// Image returns what a power failure now would leave.
func (d *Disk) Image(loss Loss, random *rand.Rand) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	image := New()
	maps.Copy(image.dirs, d.dirs)
	names := maps.Clone(d.durable)
	for _, c := range d.pending {
		if loss == None || loss == Hollow || (loss == Some || loss == Torn) && random.IntN(2) == 0 {
			c.apply(names)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		left := names[name].left(loss, random)
		image.names[name] = &file{cache: left, disk: left, shared: true}
	}
	maps.Copy(image.durable, image.names)
	return image
}

// left returns what is on the disk, and what of the rest gets there.
func (f *file) left(loss Loss, random *rand.Rand) []byte {
	if loss == All || len(f.dirty) == 0 {
		f.shared = true
		return f.disk
	}
	disk := append([]byte(nil), f.disk...)
	if loss == Hollow {
		return append(disk, make([]byte, max(0, len(f.cache)-len(disk)))...)
	}
	for _, s := range slices.Sorted(maps.Keys(f.dirty)) {
		n := sectorSize
		if loss == Some || loss == Torn {
			n *= random.IntN(2)
		}
		if loss == Torn {
			n = random.IntN(sectorSize)
		}
		disk = f.put(disk, s, n)
	}
	return disk
}

// Killed returns the disk as the next process finds it after the present one was
// killed: everything is there, and what was not synced is still to be written.
func (d *Disk) Killed() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := New()
	maps.Copy(next.dirs, d.dirs)
	copies := map[*file]*file{}
	of := func(f *file) *file {
		if f == nil {
			return nil
		}
		if copies[f] == nil {
			f.shared = true
			copies[f] = &file{cache: f.cache, disk: f.disk, shared: true, dirty: maps.Clone(f.dirty)}
		}
		return copies[f]
	}
	for name, f := range d.names {
		next.names[name] = of(f)
	}
	for name, f := range d.durable {
		next.durable[name] = of(f)
	}
	for _, c := range d.pending {
		c.file = of(c.file)
		next.pending = append(next.pending, c)
	}
	return next
}
