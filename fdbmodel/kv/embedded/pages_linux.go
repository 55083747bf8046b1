package embedded

import "syscall"

// mapSlab returns memory of the system, nil if it has none.
func mapSlab(size int) []byte {
	slab, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return slab
}

// forget gives a page's memory back, and reports whether it could.
func forget(page []byte) bool { return syscall.Madvise(page, syscall.MADV_DONTNEED) == nil }

func unmapSlab(slab []byte) { _ = syscall.Munmap(slab) }
