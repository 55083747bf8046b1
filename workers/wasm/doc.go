// Package wasm runs WebAssembly functions: modules of WASI preview 1, each
// call in an instance that holds nothing of others, with bounds on time, memory
// and output.
//
// # What a function gets
//
//   - its arguments: argv[0] is the content id, the rest is Invocation.Args
//   - the environment of the invocation and nothing of the host's
//   - standard input from memory, so that a read never blocks
//   - the machine's clocks, sleep, and randomness from the kernel
//   - from the module "futura", what Invocation.Host answers: step_get, step_put,
//     state_get, state_put, state_delete and read. The time that this takes counts,
//     and its failure ends the call
//
// It has no files, no directories and no network. The functions of WASI that
// deal with them may be imported, because compilers import them unasked; they
// answer that the descriptor does not exist. Anything else that is imported
// is refused by name.
//
// # What a call begins with
//
// A call has a fresh instance, whose memory is zero but for the module's data. A
// method, a function that is not "_start", is called after "_initialize", if
// the module exports that.
//
// A module that exports the function "futura_snapshot" declares that this start
// may be shared: "_initialize" and then "futura_snapshot" run once, and each call of
// a method begins with the state after them. After a call that returned memory and
// globals are put back, and descriptors are made anew for the next. An instance is
// thrown away if the call ended in another way, changed tables or segments, or
// made references to functions. What the start drew by chance is common to the
// calls. A call with arguments, an environment or another limit of memory begins
// with a start of its own. So do all calls if the start reads standard input, writes or
// asks its host, and where memory, tables, globals and snapshot are larger than 64 MiB.
// All modules together have as much per process; the one called longest ago makes
// room.
//
// # What bounds it
//
// A call ends when its time is over or its context is done, also in a loop
// that calls nothing. Memory beyond the limit is refused to the function, and
// a call that fails after that fails as "memory". Standard output beyond its
// bound ends the call as "too_large"; of standard error the end is kept.
// Tables, locals, stack and the size of a module are bounded as well.
//
// # Isolation
//
// By default calls run in a pool of child processes, which are the program
// itself started anew: main calls ChildMain before anything else. A call that
// must end is ended with its process, so that compiled code needs no checks
// and a function that loops can't hold up the garbage collector of the host.
// Modules are compiled in further processes, one for each. On Linux these
// processes also give up files, sockets and other processes, as far as the kernel
// can take them away: see Executor.Walls.
// Where ChildMain was not called calls run in the process itself, with checks
// compiled into every loop. That is slower, and has no second wall: see Isolation.
package wasm
