package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/impair"
	"sublet/datapath/kernel"
)

// WiresCommand is the hidden subcommand that delays the wires of a lab: the file
// that tells which follows.
const WiresCommand = "__wires"

// carryNow, behind the file, makes it the one that carries; without, it is the
// one that starts that, again whenever it was killed.
const carryNow = "carry"

// startless is how soon a carrier ends that cannot do its work.
const startless = time.Second

// WiresMain delays wires until it is stopped.
func WiresMain(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work := superviseCarrier
	if len(args) == 2 && args[1] == carryNow {
		work = carryWires
	}
	if err := work(ctx, args[0]); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

// superviseCarrier keeps a carrier running.
func superviseCarrier(ctx context.Context, file string) error {
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, "/proc/self/exe", WiresCommand, file, carryNow)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = patience
		begun := time.Now()
		err := cmd.Run()
		if ctx.Err() == nil && (cmd.ProcessState == nil || cmd.ProcessState.Exited()) && time.Since(begun) < startless {
			return fmt.Errorf("the process that delays wires ends at once: %w", err)
		}
	}
	return nil
}

// carryWires has all wires of a file go through this process.
func carryWires(ctx context.Context, file string) error {
	var all carrying
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return fmt.Errorf("read which wires to delay: %w", err)
	}
	ns, err := kernel.OpenNamespace(all.Namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	c, err := kernel.DialIn(ns)
	if err != nil {
		return err
	}
	defer c.Close()
	done := make(chan error, 2*len(all.Wires))
	for _, w := range all.Wires {
		if err := w.begin(ns, c, done); err != nil {
			return fmt.Errorf("delay wire %d: %w", w.Link, err)
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-done:
		return errors.Join(errors.New("a wire has ended"), err)
	}
}

// begin carries both directions of a wire, each on a thread of its own. The
// devices go with the process.
func (w carried) begin(ns *os.File, c *kernel.Conn, done chan<- error) error {
	for end := range 2 {
		var fd int
		err := kernel.In(ns, func() (err error) { fd, err = impair.OpenTap(carrierDevice(w.Link, end), 0); return err })
		if err != nil {
			return err
		}
		if err := w.insert(c, end); err != nil {
			return err
		}
		wire, err := impair.New(fd, fd, impair.Terms{Impairment: w.Impair, Hold: w.hold()}, rand.Uint64())
		if err != nil {
			return err
		}
		go func() { done <- wire.Run() }()
	}
	return nil
}

// carrierQueue is how many frames wait for the process.
const carrierQueue = 8192

// insert puts a device of the carrier before one end of a wire. A wire that
// carries nothing, being damaged, is left so.
func (w carried) insert(c *kernel.Conn, end int) error {
	var found [3]kernel.Link // the one that delays, that end of the wire, the other
	for i, name := range []string{carrierDevice(w.Link, end), wire(w.Link, end), wire(w.Link, 1-end)} {
		var err error
		if found[i], err = c.LinkByName(name); err != nil {
			return err
		}
	}
	late, out, in := found[0].Index, found[1].Index, found[2].Index
	if err := shape(c, late, w.Rate, w.Buffering); err != nil {
		return err
	}
	if err := cross(c, late, out); err != nil {
		return err
	}
	if err := c.DeleteQdisc(out, kernel.TCRoot); err != nil { // the shape is before the delay
		return err
	}
	silent, err := isSilent(c, in)
	if err == nil && !silent {
		err = cross(c, in, late)
	}
	if err != nil {
		return err
	}
	return c.Do(kernel.UpLink(late).Uint32(unix.IFLA_MTU, uint32(w.MTU)).Uint32(unix.IFLA_TXQLEN, carrierQueue))
}

// isSilent says whether a device of a wire lets nothing in.
func isSilent(c *kernel.Conn, device int) (bool, error) {
	list, err := c.Qdiscs()
	for _, q := range list {
		if q.Index == device && q.Kind == "clsact" {
			return false, err
		}
	}
	return true, err
}
