package impair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// Command is the hidden subcommand that runs the wires of a host; the path of
// its socket follows.
const Command = "__impair"

// Spec is a wire of one TAP device, by which its frames leave and come in again.
type Spec struct {
	Namespace string `json:"namespace"` // file of the one that the device is made in
	Device    string `json:"device"`
	Index     int    `json:"index"` // number of the device, one of its own on the host
	Terms
}

// Status is a wire at work.
type Status struct {
	Spec
	Counts Counts `json:"counts"`
}

// Wires are those of a host, in one process. Its socket answers GET /wires,
// PUT /wires (a Spec: made, or its terms changed) and DELETE /wires/INDEX.
type Wires struct {
	mu  sync.Mutex
	all map[int]*running // by number of the device
}

// running is a wire at work.
type running struct {
	carrier
	spec  Spec
	inode uint64 // of the namespace: another one may have got its file
	done  chan struct{}
}

// carrier is a Wire or a Merge.
type carrier interface {
	Run() error
	Close()
	Counts() Counts
}

// Main runs a host's wires until it is stopped: args is the path of the socket.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, args[0]); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, socket string) error {
	l, err := kernel.ListenForRoot(socket)
	if err != nil {
		return err
	}
	w := &Wires{all: make(map[int]*running)}
	server := &http.Server{Handler: w.handler(), ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (w *Wires) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /wires", func(rw http.ResponseWriter, _ *http.Request) { json.NewEncoder(rw).Encode(w.list()) })
	mux.HandleFunc("PUT /wires", func(rw http.ResponseWriter, r *http.Request) {
		var s Spec
		err := json.NewDecoder(r.Body).Decode(&s)
		if err == nil {
			err = w.set(s)
		}
		if err != nil {
			http.Error(rw, err.Error(), http.StatusConflict)
		}
	})
	mux.HandleFunc("DELETE /wires/{index}", func(rw http.ResponseWriter, r *http.Request) {
		index, err := strconv.Atoi(r.PathValue("index"))
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.end(index)
	})
	return mux
}

func (w *Wires) list() []Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []Status{}
	for _, r := range w.all {
		list = append(list, Status{r.spec, r.Counts()})
	}
	return list
}

// mostWires bounds the threads of the process: the runtime ends a program with 10,000.
const mostWires = 4000

// set makes a wire, or changes its terms.
func (w *Wires) set(s Spec) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var at unix.Stat_t
	if err := unix.Stat(s.Namespace, &at); err != nil {
		return fmt.Errorf("find namespace %s: %w", s.Namespace, err)
	}
	if r := w.all[s.Index]; r != nil {
		if r.spec.Namespace == s.Namespace && r.spec.Device == s.Device && r.inode == at.Ino {
			if wire, ok := r.carrier.(*Wire); ok && s.Stall == 0 {
				r.spec = s
				wire.Set(s.Terms)
				return nil
			}
			if r.spec == s { // a merge, as it is wanted
				return nil
			}
		}
		w.end(s.Index)
	}
	if len(w.all) >= mostWires {
		return fmt.Errorf("this host has %d impaired directions of links, the most it can", mostWires)
	}
	r, fd, err := start(s)
	if err != nil {
		return err
	}
	r.inode = at.Ino
	w.all[s.Index] = r
	go w.run(r, fd)
	return nil
}

// start makes a wire and its device.
func start(s Spec) (*running, int, error) {
	ns, err := kernel.OpenNamespace(s.Namespace)
	if err != nil {
		return nil, -1, err
	}
	defer ns.Close()
	fd := -1
	if err := kernel.In(ns, func() (err error) { fd, err = OpenTap(s.Device, s.Index); return err }); err != nil {
		return nil, -1, err
	}
	c, err := carry(fd, s.Terms)
	if err != nil {
		unix.Close(fd)
		return nil, -1, err
	}
	return &running{carrier: c, spec: s, done: make(chan struct{})}, fd, nil
}

// carry is what the terms want of a device.
func carry(fd int, t Terms) (carrier, error) {
	if t.Stall > 0 {
		return NewMerge(fd, t)
	}
	return New(fd, fd, t, rand.Uint64())
}

// run carries a wire's frames. One whose device is taken away ends.
func (w *Wires) run(r *running, fd int) {
	err := r.Run()
	unix.Close(fd)
	close(r.done)
	if err == nil {
		return
	}
	log.Printf("%s: %v", r.spec.Device, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all[r.spec.Index] == r {
		delete(w.all, r.spec.Index)
	}
}

// end ends a wire, and waits until its device is gone.
func (w *Wires) end(index int) {
	if r := w.all[index]; r != nil {
		delete(w.all, index)
		r.Close()
		<-r.done
	}
}
