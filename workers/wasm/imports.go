package wasm

// wasiModule is the module that a function may import from, beside hostModule.
const wasiModule = "wasi_snapshot_preview1"

// preview1 is every function of WASI preview 1. Those that deal with files and
// sockets find no descriptor: a function has no descriptors but its three
// streams.
var preview1 = map[string]struct{}{
	"args_get": {}, "args_sizes_get": {}, "environ_get": {}, "environ_sizes_get": {},
	"clock_res_get": {}, "clock_time_get": {}, "random_get": {}, "poll_oneoff": {},
	"proc_exit": {}, "proc_raise": {}, "sched_yield": {},
	"fd_advise": {}, "fd_allocate": {}, "fd_close": {}, "fd_datasync": {}, "fd_fdstat_get": {},
	"fd_fdstat_set_flags": {}, "fd_fdstat_set_rights": {}, "fd_filestat_get": {},
	"fd_filestat_set_size": {}, "fd_filestat_set_times": {}, "fd_pread": {}, "fd_prestat_get": {},
	"fd_prestat_dir_name": {}, "fd_pwrite": {}, "fd_read": {}, "fd_readdir": {}, "fd_renumber": {},
	"fd_seek": {}, "fd_sync": {}, "fd_tell": {}, "fd_write": {},
	"path_create_directory": {}, "path_filestat_get": {}, "path_filestat_set_times": {}, "path_link": {},
	"path_open": {}, "path_readlink": {}, "path_remove_directory": {}, "path_rename": {},
	"path_symlink": {}, "path_unlink_file": {},
	"sock_accept": {}, "sock_recv": {}, "sock_send": {}, "sock_shutdown": {},
}
