package careless

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// manner is how a command is run.
type manner int

// Manners.
const (
	plain   manner = iota
	killed         // it is sent a signal at any moment
	shut           // nobody reads what it prints
	blocked        // what it prints can't be written
	gone           // its working directory was removed
	limited        // no file that it writes may be large
)

// manner draws one.
func (w *walk) manner(c *call) manner {
	if c.interrupt {
		return killed
	}
	switch n := w.random.IntN(100); {
	case n < 70:
		return plain
	case n < 82:
		return killed
	case n < 87:
		return shut
	case n < 91:
		return blocked
	case n < 95 && w.shell != "":
		return gone
	case w.shell != "":
		return limited
	default:
		return plain
	}
}

// maxLimit is the largest limit on files that a command is given, in blocks of 512
// bytes.
const maxLimit = 64

// issue starts a command.
func (w *walk) issue(c *call, how manner) *process {
	w.note("%v %q", []string{"", "killed", "shut", "blocked", "in a removed directory", "limited"}[how], c.args)
	args := append([]string{w.bin}, c.args...)
	c.how = how
	switch how {
	case shut:
		f := w.shut()
		defer f.Close()
		p := w.start(w.now.dir, f, c.in, args...)
		p.struck = true
		return p
	case blocked:
		f := w.fullFile()
		defer f.Close()
		return w.start(w.now.dir, f, c.in, args...)
	case gone:
		dir := filepath.Join(w.dir, "gone-"+strconv.Itoa(w.commands))
		w.must(os.Mkdir(dir, 0o700))
		return w.start(dir, nil, c.in, append([]string{w.shell, "-c", `rmdir "$PWD"; exec "$0" "$@"`}, args...)...)
	case limited:
		script := "ulimit -f " + strconv.Itoa(w.random.IntN(maxLimit)) + `; exec "$0" "$@"`
		return w.start(w.now.dir, nil, c.in, append([]string{w.shell, "-c", script}, args...)...)
	case killed:
		p := w.start(w.now.dir, nil, c.in, args...)
		signal := pick(w, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL})
		after := time.Duration(1+w.random.IntN(30)) * time.Duration(1+w.random.IntN(30)) * time.Millisecond
		p.struck = true
		go func() {
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-p.done:
			case <-timer.C:
				p.strike(signal)
			}
		}()
		return p
	default:
		return w.start(w.now.dir, nil, c.in, args...)
	}
}

// judge compares the end of a command with what it may be, and enters in the ledger
// what it promised.
func (w *walk) judge(c *call, p *process) {
	code, out := p.code(), string(read(p.out))
	w.note("  %q ended with %d: %.300q", c.args, code, tail(p.err, 300))
	may := c.codes == nil || slices.Contains(c.codes, code) || code == codeStore ||
		p.struck && (died(code) || code == codeInterrupted)
	if !may {
		w.fail("%q may end with %v, and ended with %d: %s\n%s", c.args, c.codes, code, out, read(p.err))
	}
	if c.command == "check" && code == codeFailed {
		w.fail("check found problems: %s", out)
	}
	if c.how != shut && c.how != blocked && c.after != nil {
		c.after(code, out)
	}
	p.tidy()
}

var idLine = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// promisedID is the id that a whole line or a JSON object has, empty for none.
func promisedID(out string) string {
	var object struct{ ID string }
	if json.Unmarshal([]byte(out), &object) == nil {
		return object.ID
	}
	line, _, whole := strings.Cut(out, "\n")
	if whole && idLine.MatchString(line) {
		return line
	}
	return ""
}
