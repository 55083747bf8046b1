package mutants

// snapshotMutants are faults of snapshots, and of backups that are made from them.
func snapshotMutants() []mutant {
	const file, backup = inEngine + "snapshot.go", "fdbmodel/transfer/backup.go"
	by := suites{{of: "fdbmodel/kv/embedded", run: "Snapshot"}}
	return []mutant{
		{name: "a snapshot lacks the last record", file: file, by: by,
			old: "s.seal(next-1, r.end)", new: "s.seal(next-2, r.end)"},
		{name: "a snapshot has the log that is still written", file: file, by: by,
			old: "if s.Sealed {", new: "if s.Sealed || m != nil {"},
		{name: "a snapshot hides that synced records are missing", file: file, by: by,
			old: "if next <= known {", new: "if next <= s.First {"},
		{name: "a snapshot passes over a mark of a later segment", file: file, by: by,
			old: "case mark.segment > s.File:", new: "case s.File == 0:"},
		{name: "a snapshot is removed while another process makes it", file: file, by: by,
			old: "		if !errors.Is(err, kv.ErrStoreInUse) {\n",
			new: "		if errors.Is(err, kv.ErrStoreInUse) {\n			return all, io.NopCloser(nil), nil\n		}\n		if err != nil {\n"},
		{name: "a snapshot is removed while it is read", file: file, by: by,
			old: "left, unused, err := lockDirectory(d.file(name), &Options{FS: o.FS, Exposed: o.Exposed})",
			new: "left, unused, err := directory{fs: o.FS, path: d.file(name)}, io.NopCloser(nil), error(nil)"},
		{name: "a snapshot is of the store that has the place now", file: file, by: by,
			old: "o.Only = hex.EncodeToString(id[:])", new: "_ = hex.EncodeToString(id[:])"},
		{name: "a snapshot lacks what was acknowledged before its sync", file: file, by: by,
			old: "if s.disk.begun.Load() {", new: "if !s.disk.begun.Load() {"},
		{name: "a backup begins behind what was read in vain", file: backup,
			by:  suites{{of: "fdbmodel/transfer", run: "Backup"}},
			old: "if err := rewind(file); err != nil {", new: "if err := ctx.Err(); err != nil {"},
	}
}
