package objects

import "sync"

const (
	// segmentSize is where a file that several objects share ends, in bytes.
	segmentSize = 64 << 20
	// sharedSize is the size of the largest object that shares a file.
	sharedSize = 4 << 20
	// pageSize is the unit in which disk and memory are taken and given back.
	pageSize = 4 << 10
)

// segment is a file on disk with the content of one or several objects.
type segment struct {
	disk *disk
	file file
	// The disk's lock guards what follows.
	end  int64 // where the next object goes
	live int   // contents
	kept int64 // bytes of dropped contents that the file still takes
}

// disk makes and drops contents on disk.
type disk struct {
	store *Store

	mu      sync.Mutex
	current *segment // that takes more, or nil
}

// place finds a place for an object. One of unknown size, less than 0, gets a file
// of its own. The store has counted the bytes.
func (d *disk) place(size int64) (*extent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size < 0 || size > sharedSize {
		s, err := d.open()
		if err != nil {
			return nil, err
		}
		s.live = 1
		return &extent{segment: s}, nil
	}
	length := pages(size)
	if d.current == nil || d.current.end+length > segmentSize {
		s, err := d.open()
		if err != nil {
			return nil, err
		}
		d.current = s
	}
	e := &extent{segment: d.current, offset: d.current.end, length: length}
	d.current.end += length
	d.current.live++
	return e, nil
}

func (d *disk) open() (*segment, error) {
	if err := d.store.takeFile(); err != nil {
		return nil, err
	}
	f, err := d.store.options.create(d.store.options.Dir)
	if err != nil {
		d.store.giveFile()
		return nil, err
	}
	return &segment{disk: d, file: f}, nil
}

// close closes a segment, which gives back all that it takes.
func (d *disk) close(s *segment) error {
	d.store.giveFile()
	d.store.keep(-s.kept)
	return s.file.Close()
}

// leave ends one content of a segment. What the file goes on taking for it is
// counted until the segment is closed.
func (s *segment) leave(e *extent) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if s.live--; s.live == 0 {
		if s == s.disk.current {
			s.disk.current = nil
		}
		return s.disk.close(s)
	}
	if e.length > 0 && s.file.punch(e.offset, e.length) != nil {
		s.kept += e.length
		s.disk.store.keep(e.length)
	}
	return nil
}

// pages rounds a number of bytes up to whole pages.
func pages(n int64) int64 { return (n + pageSize - 1) / pageSize * pageSize }
