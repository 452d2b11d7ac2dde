package image

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// work is a layer that a process of its own unpacks: what is in it is a stranger's, and
// takes from processors and disks only what others leave. The layer is its standard
// input.
type work struct {
	Root   string  `json:"root"`
	Owner  Owner   `json:"owner"`
	Digest v1.Hash `json:"digest"`
	Left   left    `json:"left"`
	Most   Limits  `json:"most"`
}

// left is what an image may still take (budget).
type left struct {
	Stream  int64 `json:"stream"`
	Files   int64 `json:"files"`
	Entries int   `json:"entries"`
}

func (b *budget) rest() left   { return left{b.stream.left, b.files.left, b.entries} }
func (b *budget) leave(l left) { b.stream.left, b.files.left, b.entries = l.Stream, l.Files, l.Entries }

// word is what the process says: what the image has taken until now, and at the end what
// is left, or what is wrong.
type word struct {
	Taken    int64  `json:"taken,omitempty"`
	Left     *left  `json:"left,omitempty"`
	Wrong    string `json:"wrong,omitempty"`
	TooLarge bool   `json:"too_large,omitempty"` // ErrTooLarge
}

// workVariable is the environment variable that says what to do.
const workVariable = "SUBLET_UNPACK"

// Unpack is the life of that process.
func Unpack() error {
	var w work
	if err := json.Unmarshal([]byte(os.Getenv(workVariable)), &w); err != nil {
		return err
	}
	say := json.NewEncoder(os.Stdout)
	b, err := w.unpack(func(taken int64) error { return say.Encode(word{Taken: taken}) })
	if err != nil {
		return say.Encode(word{Wrong: err.Error(), TooLarge: errors.Is(err, ErrTooLarge)})
	}
	rest := b.rest()
	return say.Encode(word{Left: &rest})
}

func (w work) unpack(claim func(int64) error) (*budget, error) {
	t, err := treeAt(w.Root, w.Owner)
	if err != nil {
		return nil, err
	}
	defer t.close()
	b := newBudget(context.Background(), t.root, w.Most)
	b.leave(w.Left)
	b.claim = claim
	return b, layer(t, os.Stdin, w.Digest, b)
}

// apartEnds is how long a stream may hold up the end of what read it.
const apartEnds = 5 * time.Second

// apart unpacks a layer by a process of its own.
func (s *Store) apart(t *tree, packed io.Reader, digest v1.Hash, b *budget) error {
	spec, err := json.Marshal(work{t.path, t.owner, digest, b.rest(), b.most})
	if err != nil {
		return err
	}
	input := &noted{Reader: packed}
	cmd := s.Apart()
	cmd.WaitDelay, cmd.Env, cmd.Stdin = apartEnds, append(cmd.Env, workVariable+"="+string(spec)), input
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // it ends with this thread (PR_SET_PDEATHSIG)
	defer runtime.UnlockOSThread()
	if err := quietly(cmd); err != nil {
		return fmt.Errorf("start a process that unpacks it: %w", err)
	}
	stop := context.AfterFunc(b.ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	heard := b.listen(out)
	if heard != nil {
		_ = cmd.Process.Kill()
	}
	ended := cmd.Wait()
	switch {
	case b.ctx.Err() != nil:
		return b.ctx.Err()
	case input.err != nil:
		return plain(input.err)
	case heard != nil && !errors.Is(heard, io.EOF):
		return heard
	case heard != nil:
		return fmt.Errorf("the process that unpacked it ended: %w", ended)
	}
	return nil
}

// listen follows what the process says; io.EOF: it ended before it was done.
func (b *budget) listen(out io.Reader) error {
	for said := json.NewDecoder(out); ; {
		var w word
		if err := said.Decode(&w); err != nil {
			return io.EOF
		}
		switch {
		case w.TooLarge:
			return tooLarge(w.Wrong)
		case w.Wrong != "":
			return errors.New(w.Wrong)
		case w.Left != nil:
			b.leave(*w.Left)
			return nil
		}
		if err := b.claim(w.Taken); err != nil {
			return err
		}
	}
}

// tooLarge is ErrTooLarge in the words of another process.
type tooLarge string

func (t tooLarge) Error() string { return string(t) }
func (tooLarge) Unwrap() error   { return ErrTooLarge }

// noted keeps why a stream ended before its end.
type noted struct {
	io.Reader
	err error
}

func (n *noted) Read(p []byte) (int, error) {
	size, err := n.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return size, err
}

// The least of what processors and disks give: a nice value, and a class of ioprio_set(2).
const (
	mostNice  = 19
	idleClass = 3 << 13
)

// quietly starts a process that takes what others leave, all of its threads: they
// inherit that of the thread that starts it, which must be the caller's alone. It ends
// with that thread.
func quietly(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGKILL}
	was, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the nice value
	if err != nil {
		return err
	}
	ioprio := func(class uintptr) { // kernels without classes serve all alike
		const thread = 1 // IOPRIO_WHO_PROCESS
		_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, thread, 0, class)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, mostNice); err != nil {
		return err
	}
	ioprio(idleClass)
	err = cmd.Start()
	ioprio(0)
	return errors.Join(err, unix.Setpriority(unix.PRIO_PROCESS, 0, 20-was))
}

// discard removes a tree that is of no use, however large it is.
func discard(dir string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command("rm", "-rf", "--one-file-system", "--", dir)
	if err := quietly(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}
