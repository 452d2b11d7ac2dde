package vnode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// supervisor starts the programs of a node, in order, and keeps them. It is
// a process of its own: agents come and go meanwhile. It is root of the host,
// so nobody in the node can stop it, enters the node with a thread for each
// program, and counts against the node's limits. If it ends, the agent starts
// the programs anew.
type supervisor struct {
	session               // how it enters the node
	Programs []supervised `json:"programs"`
	State    string       `json:"state"`             // file
	Given    string       `json:"given"`             // file, which it locks for as long as it lives (fcntl_locking(2))
	Owner    uint32       `json:"owner"`             // root of the node
	Machine  *machine     `json:"machine,omitempty"` // its one program is this one

	given       vnet.Setup              // to the machine
	disk, layer *os.File                // of the machine
	console     *console                // the same
	nics        []nic                   // with which it runs
	replugged   atomic.Bool             // it ends because it is to have others
	control     atomic.Pointer[control] // of the one that runs
	resuming    atomic.Bool             // it has been given its memory, and does not go on yet
	comes       atomic.Bool             // it waits for what it is, from another host
	whole       atomic.Bool             // that has come
	emulator    atomic.Int64            // the process that runs
	handed      atomic.Bool             // what it is may be all on another host

	latest     sync.Mutex    // of the next
	stopLatest chan struct{} // closed: what an agent said last is not to be done any more
	obeying    sync.Mutex    // one word at a time

	mu     sync.Mutex // of states and logging
	states []programState
	moving sync.Mutex    // between control groups
	ending chan struct{} // closed: programs end, and none is started again
}

// supervised is a program and where it runs.
type supervised struct {
	vnet.Program
	Group string `json:"group"` // cgroup.procs file of its own
}

// programState is what the agent reads of a program.
type programState struct {
	Why    string `json:"why,omitempty"`    // it is not ready; "": it is
	Failed bool   `json:"failed,omitempty"` // and has ended, at least once
}

const (
	superviseCommand = "supervise"
	initGroup        = "init"
	programGroup     = "run-"
)

// oneProcessor keeps the supervisor small; its programs do not get it.
const oneProcessor = "GOMAXPROCS"

// startSupervisor starts a node's, and waits until it has begun.
func (p *Part) startSupervisor(s plan.Setup) error {
	key := s.Key()
	owner, err := p.host.Owner(key)
	if err != nil {
		return fmt.Errorf("the node is not here: %w", err)
	}
	spaces, err := p.open(key)
	if err != nil {
		return err
	}
	defer closeAll(spaces)
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	var files []*os.File
	var m *machine
	if s.Machine() {
		files, m, err = p.openMachine(s, readyPipe+1+len(spaces))
		defer closeAll(files)
	}
	var spec string
	if err == nil {
		spec, err = p.supervisor(s, owner, len(spaces), m)
	}
	if err != nil {
		theirs.Close()
		return err
	}
	cmd := exec.Command(kernel.Inner(), InitCommand, superviseCommand)
	cmd.Dir, cmd.ExtraFiles = "/", slices.Concat([]*os.File{theirs}, spaces, files)
	cmd.Env = append(environment(owner, s.Node), oneProcessor+"=1", kernel.SpecVariable+"="+spec)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start its programs: %w", err)
	}
	late := time.AfterFunc(answerTries*answerTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	go func() { _ = cmd.Wait() }() // as long as the node lives, or this program
	said, err := io.ReadAll(ready)
	if len(said) > 0 {
		return errors.New(string(said))
	}
	if err == nil && p.supervisorOf(key) == 0 {
		err = errors.New("what starts its programs ended at once")
	}
	return err
}

// supervisor is what the process needs to know. It finds the node's namespaces
// behind the pipe among its descriptors.
func (p *Part) supervisor(s plan.Setup, owner uint32, spaces int, m *machine) (string, error) {
	id, node := s.Lease, p.host.Group(s.Key())
	init := node.Sub(initGroup)
	if err := init.Make(); err != nil {
		return "", err
	}
	made := supervisor{State: p.statePath(s.Key()), Given: p.setupPath(s.Key()), Owner: owner, Machine: m, session: session{
		Node: s.Node, Hosts: p.namesPath(plan.Fabric(id)), FRR: p.host.FRRDirs(s.Key()), Run: p.host.Run, Program: p.program, Log: p.logPath(s.Key()),
		Groups: init.Files(), Group: init.Files()[0], Env: variables(s.Setup), Dir: s.Workdir, As: s.User, Order: keepLast, Memory: node.MemoryFiles(),
	}}
	for i := range spaces {
		made.Rooms = append(made.Rooms, fmt.Sprintf("/proc/self/fd/%d", readyPipe+1+i))
	}
	for i, program := range programsOf(s.Setup) {
		group := node.Sub(programGroup + strconv.Itoa(i))
		if err := group.Make(); err != nil {
			return "", err
		}
		made.Programs = append(made.Programs, supervised{program, group.Files()[0]})
	}
	spec, err := json.Marshal(&made)
	return string(spec), err
}

// run is the process's life: until it is told to end.
func (s *supervisor) run() error {
	pipe := os.NewFile(readyPipe, "ready")
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, suspendSignal)
	unix.CloseRange(readyPipe, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	// Its programs go first when memory is out.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(keepLast), 0)
	os.Unsetenv(oneProcessor)
	s.ending = make(chan struct{})
	s.states = make([]programState, len(s.Programs))
	for i := range s.states {
		s.states[i].Why = "waits for those before it"
	}
	err := s.openMachine()
	var given *os.File
	if err == nil {
		given, err = s.lock()
	}
	if err == nil {
		defer given.Close()
		err = s.tell()
	}
	if err != nil {
		fmt.Fprint(pipe, err)
		return err
	}
	pipe.Close()
	var all sync.WaitGroup
	go func() {
		if <-signals == suspendSignal {
			if err := s.suspend(); err != nil {
				s.log(fmt.Sprintf("sublet: the machine's memory is not taken along: %v\n", err))
			}
		}
		close(s.ending)
	}()
	for i := range s.Programs {
		ready := make(chan struct{})
		all.Go(func() { s.live(i, ready) })
		select {
		case <-ready:
		case <-s.ending:
		}
		if s.isEnding() {
			break
		}
	}
	<-s.ending
	all.Wait() // at most stopTime
	return nil
}

// openMachine takes the files of a machine, for as long as this process lives, and
// makes its console. It reads the node's file before that is locked: to close it
// would give up the lock (fcntl_locking(2)).
func (s *supervisor) openMachine() (err error) {
	if s.Machine == nil {
		return nil
	}
	read, err := readSetup(s.Given)
	if err != nil {
		return err
	}
	s.given = read.Setup
	s.disk, s.layer = os.NewFile(uintptr(s.Machine.Disk), "disk"), os.NewFile(uintptr(s.Machine.Layer), "layer")
	s.comes.Store(s.Machine.Comes)
	if s.console, err = openConsole(s.Machine.Console); err == nil && s.Machine.Asleep != "" {
		err = s.openDoor(s.Machine.Door)
	}
	return err
}

// lock shows agents who the supervisor is: for that its control group is no
// good, since it enters those of its programs for moments.
func (s *supervisor) lock() (*os.File, error) {
	f, err := os.OpenFile(s.Given, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		return nil, fmt.Errorf("its programs are being started already (%s): %w", s.Given, err)
	}
	return f, nil
}

func (s *supervisor) isEnding() bool {
	select {
	case <-s.ending:
		return true
	default:
		return false
	}
}

// say notes what a program's state is now, if that is another one.
func (s *supervisor) say(i int, state programState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states[i] == state {
		return
	}
	s.states[i] = state
	_ = s.tell() // the directory is gone with the node
}

func (s *supervisor) tell() error { return writeWhole(s.State, s.states) }

// within runs do while this process is in a program's control group, so that
// what do starts is there from its first instruction.
func (s *supervisor) within(group string, do func() error) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	if err := os.WriteFile(group, []byte("0"), 0); err != nil {
		return fmt.Errorf("join cgroup: %w", err)
	}
	return errors.Join(do(), os.WriteFile(s.Group, []byte("0"), 0))
}

// start starts argv in the node as a program's user, its output into out.
func (s *supervisor) start(p supervised, argv []string, out *os.File) (child *os.Process, err error) {
	one := s.session
	one.Argv, one.As = argv, cmp.Or(p.User, s.As)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return s.startIn(p.Group, one, []*os.File{null, out, out})
}

// startIn starts a command in the node, with some descriptors.
func (s *supervisor) startIn(group string, one session, files []*os.File) (child *os.Process, err error) {
	err = s.within(group, func() (err error) {
		entered := make(chan bool)
		go func() {
			defer close(entered)
			child, err = one.enter(files) // its thread ends with it
		}()
		<-entered
		return err
	})
	if errors.Is(err, unix.ENOMEM) { // also: the node's first process has ended
		os.Exit(exitNotStarted) // the agent starts all of it anew
	}
	if err == nil && child == nil {
		err = errNoProgram
	}
	return child, err
}

var errNoProgram = errors.New("is no program of the node")

// Back-off between starts of a program that ends; one that has run for steady
// begins anew.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 30 * time.Second
	steady     = 10 * time.Second
)

// live starts a program, and starts it again as its policy has it. ready is
// closed when it is ready for the first time.
func (s *supervisor) live(i int, ready chan<- struct{}) {
	once := sync.OnceFunc(func() { close(ready) })
	pause, failed := firstPause, ""
	for {
		s.awaitReturn(i)
		began := time.Now()
		why, ok := s.once(i, failed, once)
		if s.isEnding() {
			return
		}
		s.cameHome()
		if s.replugged.Swap(false) {
			continue
		}
		if s.resuming.Swap(false) {
			s.log("sublet: the machine cannot go on with its memory: it begins from its disk\n")
			continue
		}
		policy := s.Programs[i].Restart
		switch {
		case s.comes.Load(), s.handed.Load(): // it has not begun here, or has left
		case policy != vnet.RestartAlways && ok:
			once()
			s.say(i, programState{})
			return
		case policy != vnet.RestartAlways && policy != vnet.RestartOnFailure:
			s.say(i, programState{Why: why, Failed: true})
			return
		}
		if time.Since(began) > steady {
			pause = firstPause
		}
		failed = why + ", it is started again"
		if s.comes.Load() {
			failed = ""
		}
		s.say(i, programState{Why: failed, Failed: failed != ""})
		s.log(fmt.Sprintf("sublet: %s %s in %s\n", s.name(i), failed, pause))
		select {
		case <-s.ending:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// once runs a program and says how it ended; ok: with exit code 0. failed is
// how it ended before; "": it did not.
func (s *supervisor) once(i int, failed string, ready func()) (why string, ok bool) {
	program := s.Programs[i]
	s.clear(program.Group)
	ours, theirs, err := s.pipe()
	if err != nil {
		return "cannot be started: " + err.Error(), false
	}
	kills := s.Memory.Kills()
	child, err := s.startProgram(program, theirs)
	theirs.Close()
	if err != nil {
		ours.Close()
		if !errors.Is(err, errNoProgram) {
			err = fmt.Errorf("cannot be started: %w", err)
		}
		s.log(fmt.Sprintf("sublet: %s %v\n", s.name(i), err))
		return err.Error(), false
	}
	ended := make(chan struct{})
	if s.Machine != nil {
		go s.keepJoined(s.nics, child.Pid, ended)
	}
	defer s.wait(ended, i, failed, ready, s.relay(ours, program.Ready.Line))()
	state := s.await(child)
	close(ended)
	s.emulator.Store(0)
	why = state.String()
	if state.signaled && state.code == int(unix.SIGKILL) && s.Memory.Kills() > kills {
		why += ": " + outOfMemory(s.Memory)
	}
	return why, state.code == 0 && !state.signaled
}

// startProgram starts a program of the node, or the machine that it is.
func (s *supervisor) startProgram(p supervised, out *os.File) (*os.Process, error) {
	if s.Machine != nil {
		return s.boot(p.Group, out)
	}
	return s.start(p, p.Cmd, out)
}

// name is what a program is called in the log.
func (s *supervisor) name(i int) string {
	if s.Machine != nil {
		return "the machine"
	}
	return fmt.Sprintf("program %d", i+1)
}

// await waits for a program, which is told to end when this process is.
func (s *supervisor) await(child *os.Process) exit {
	done := make(chan exit, 1)
	go func() { done <- exitOf(child) }()
	select {
	case e := <-done:
		return e
	case <-s.ending:
	}
	unix.Kill(-child.Pid, unix.SIGTERM)
	select {
	case e := <-done:
		return e
	case <-time.After(stopTime):
		return exit{} // killed with its group
	}
}

// clear kills what a program left running.
func (s *supervisor) clear(group string) {
	for range moves {
		pids := members(group)
		if len(pids) == 0 {
			return
		}
		for _, pid := range slices.Backward(pids) {
			unix.Kill(pid, unix.SIGKILL) // one that has ended is fine
		}
		time.Sleep(time.Millisecond)
	}
}

// exit is how a process ended.
type exit struct {
	code     int
	signaled bool
}

func (e exit) String() string {
	switch {
	case e.signaled:
		return fmt.Sprintf("was ended by signal %d", e.code)
	}
	return fmt.Sprintf("ended with exit code %d", e.code)
}

func exitOf(child *os.Process) exit {
	state, err := child.Wait()
	if err != nil {
		return exit{code: -1}
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return exit{int(status.Signal()), true}
	}
	return exit{code: state.ExitCode()}
}
