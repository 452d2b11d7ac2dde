package vnode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
)

// run is the life of a session's first process: it is root of the host,
// enters the node, and starts the command there without those rights.
func (s session) run() (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, abandoned)
	// What this process inherited by mistake, the command shall not.
	unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	s.answers = new(*rings)
	runtime.LockOSThread() // the process's first thread would not end with what enters
	var child *os.Process
	var err error
	entered := make(chan bool)
	go func() {
		defer close(entered)
		streams, failure := s.streams()
		if err = failure; err == nil {
			child, err = s.enter(streams) // its thread ends with it: this goroutine's stays outside
		}
	}()
	<-entered
	if err != nil {
		return 0, err
	}
	if child == nil {
		fmt.Fprintf(os.Stderr, "sublet: there is no program %s in node %s\n", s.Argv[0], s.Node)
		return 127, nil
	}
	if s.Log != "" {
		if err := s.awaitInside(child); err != nil {
			return 0, err
		}
		fmt.Println(numberInside(child.Pid))
		return 0, s.handOver()
	}
	var last sync.Mutex // whoever has it ends this process
	go s.forward(signals, child, &last)
	code, err := await(child)
	last.Lock()
	return code, errors.Join(err, s.handOver())
}

// enter starts the command in the node, from a thread of its own that enters it
// but for its files, which may hold no nsenter(1); nil: there is no such program.
func (s session) enter(streams []*os.File) (child *os.Process, err error) {
	runtime.LockOSThread()
	if there, err := s.prepareFiles(); err != nil || !there {
		return nil, err
	}
	order, err := os.OpenFile("/proc/self/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer order.Close()
	unix.Unshare(unix.CLONE_NEWCGROUP) // only hides the group's name; old kernels cannot
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("forbid set-uid programs: %w", err)
	}
	asked, err := confine()
	if err != nil {
		return nil, err
	}
	if err := s.answerRings(asked); err != nil {
		return nil, err
	}
	for i, room := range rooms {
		if room.flag == unix.CLONE_NEWNS {
			continue
		}
		if err := s.setns(s.Rooms[i], room.flag); err != nil {
			return nil, fmt.Errorf("enter the node's %s namespace: %w", room.name, err)
		}
	}
	return s.start(streams, order)
}

// awaitInside waits until a command that is left running has entered the node:
// until then it needs descriptors of this process.
func (s session) awaitInside(child *os.Process) error {
	owner, err := kernel.UserNamespace(s.room("net"))
	if err != nil {
		return err
	}
	defer owner.Close()
	inside := fmt.Sprintf("/proc/%d/ns/user", child.Pid)
	for end := time.Now().Add(answerTries * answerTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(inside); err != nil || kernel.SameFile(owner, inside) {
			break // it has ended, or is there
		}
	}
	return nil
}

// prepareFiles shows what has changed of what the node sees of Sublet's, and says
// whether it has the command and its user. A thread that ends does it inside.
func (s session) prepareFiles() (there bool, err error) {
	trees, err := s.trees()
	defer func() {
		for _, tree := range trees {
			unix.Close(tree)
		}
	}()
	if err != nil {
		return false, err
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = unix.Unshare(unix.CLONE_FS); err != nil { // setns(2): no other thread shares the root directory
			err = fmt.Errorf("part from other threads: %w", err)
			return
		}
		if err = s.setns(s.room("mnt"), unix.CLONE_NEWNS); err != nil {
			err = fmt.Errorf("enter the node's mnt namespace: %w", err)
			return
		}
		if err = refresh(trees); err == nil && s.As != "" {
			_, err = account(s.As) // so that it is not found out by a command that ends at once
		}
		there = s.findsItself() || isThere(s.Argv[0])
	}()
	<-done
	return there, err
}

// room is the file of one of the namespaces to enter, by its name in rooms.
func (s session) room(name string) string {
	for i, room := range rooms {
		if room.name == name {
			return s.Rooms[i]
		}
	}
	return ""
}

func (s session) setns(path string, flag int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), flag)
}

// abandoned is the signal that a session's first process gets when the agent
// has ended: who asked for the command is gone, and it ends too.
const abandoned = unix.SIGPWR

// join moves this process into the node's control groups and starts it anew,
// with a spec that has none: its memory, some megabytes, is the node's then.
func join(groups *[]string, command string, s any) error {
	for _, file := range *groups {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	*groups = nil
	spec, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = unix.Exec(kernel.Self, []string{kernel.Self, InitCommand, command}, append(os.Environ(), kernel.SpecVariable+"="+string(spec)))
	return fmt.Errorf("start anew in the node's control group: %w", err)
}

// furnish sets up host name, file systems and network.
func (s pause) furnish() error {
	owner, err := kernel.UserNamespace(s.Namespace)
	if err != nil {
		return err
	}
	defer owner.Close()
	if err := unix.Sethostname([]byte(s.Node)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	// Mounts of the node do not reach the host.
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	network, err := kernel.OpenNamespace(s.Namespace)
	if err != nil {
		return err
	}
	defer network.Close()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter %s: %w", s.Namespace, err)
	}
	return s.changeRoot(owner)
}

const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// kernelFiles mounts /proc and /sys.
func kernelFiles() error {
	if err := mount("proc", "/proc", "proc", safe, ""); err != nil {
		return err
	}
	// Of the settings, those of the node's network are its own; a mount of
	// their own keeps them out of what follows.
	if err := mount("/proc/sys/net", "/proc/sys/net", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	for _, path := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr"} {
		if err := readOnly("/proc/" + path); err != nil {
			return err
		}
	}
	return mount("sysfs", "/sys", "sysfs", safe|unix.MS_RDONLY, "")
}

const hostsFile = "/etc/hosts"

const resolverFile = "/etc/resolv.conf"

// readOnly makes one path read only, if it is there.
func readOnly(path string) error {
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil
	}
	if err := mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|safe, "")
}

func mount(source, target, fs string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, fs, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}

// start runs the command through nsenter(1), which gives up the host's rights
// on entering the user namespace. The command leads a process group of its
// own, in the foreground of its terminal, or a session of its own.
func (s session) start(streams []*os.File, order *os.File) (*os.Process, error) {
	nsenter, err := findNsenter()
	if err != nil {
		return nil, err
	}
	// nsenter opens descriptors of this process by name, so the command inherits
	// nothing. They stay for as long as anybody has the process: when it does that
	// is not known.
	files, err := os.Open(s.room("mnt"))
	if err != nil {
		return nil, err
	}
	owner, err := kernel.UserNamespace(s.room("net"))
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	// If the node has no memory left, the command goes first, and whoever asked
	// learns its exit code.
	if _, err := order.WriteString(killFirst); err != nil {
		return nil, fmt.Errorf("let the command be killed first: %w", err)
	}
	defer order.WriteString(cmp.Or(s.Order, killAsOthers))
	inside, env, err := s.command()
	if err != nil {
		return nil, err
	}
	own := fmt.Sprintf("/proc/%d/fd/", os.Getpid())
	argv := append([]string{"nsenter", fmt.Sprintf("--mount=%s%d", own, files.Fd()), fmt.Sprintf("--user=%s%d", own, owner.Fd()), "--"}, inside...)
	child, err := os.StartProcess(nsenter, argv, &os.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: streams,
		Sys:   &syscall.SysProcAttr{Setsid: s.Log != "", Setpgid: s.Log == "", Foreground: s.TTY},
	})
	if err != nil {
		closeAll([]*os.File{files, owner})
		return nil, err
	}
	runtime.AddCleanup(child, closeAll, []*os.File{files, owner})
	return child, nil
}

// What a process and those it starts are to the kernel when memory is out
// (proc_pid_oom_score_adj(5)).
const (
	killFirst    = "500"
	killAsOthers = "0"
	keepLast     = "-1000" // all of the node's programs would go with it
)

// streams are the command's: this process's, or nothing and the node's log.
func (s session) streams() ([]*os.File, error) {
	if s.Log == "" {
		return []*os.File{os.Stdin, os.Stdout, os.Stderr}, nil
	}
	log, err := openLog(s.Log)
	if err != nil {
		return nil, fmt.Errorf("open the node's log: %w", err)
	}
	null, err := os.Open(os.DevNull)
	return []*os.File{null, log, log}, err
}

// numberInside is the number of a process in its own process namespace; 0: it
// has ended.
func numberInside(pid int) int {
	numbers := numbersOf(pid)
	if len(numbers) == 0 {
		return 0
	}
	return numbers[len(numbers)-1]
}

// numbersOf are the numbers of a process in the process namespaces it is in,
// outermost first.
func numbersOf(pid int) (numbers []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\nNSpid:")
	line, _, _ := strings.Cut(rest, "\n")
	for _, field := range strings.Fields(line) {
		n, _ := strconv.Atoi(field)
		numbers = append(numbers, n)
	}
	return numbers
}

// isThere says whether a name without a path is that of a program. Paths are
// left to nsenter, which looks with the tenant's rights.
func isThere(name string) bool {
	if strings.Contains(name, "/") {
		return true
	}
	_, err := exec.LookPath(name)
	return !errors.Is(err, exec.ErrNotFound)
}

func findNsenter() (string, error) {
	for _, path := range []string{"/usr/bin/nsenter", "/bin/nsenter"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("nsenter is not installed: apt-get install util-linux")
}

// forward passes signals on to the command's process group. When nobody is
// left who wants the command, all of the session ends.
func (s session) forward(signals <-chan os.Signal, child *os.Process, last *sync.Mutex) {
	for received := range signals {
		if received != abandoned {
			unix.Kill(-child.Pid, received.(unix.Signal)) // one that is gone is fine
			continue
		}
		last.Lock()
		for _, pid := range members(s.Group) {
			if pid != os.Getpid() {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		os.Exit(exitNotStarted)
	}
}

// members lists the processes of a control group by its file.
func members(file string) (pids []int) {
	text, _ := os.ReadFile(file)
	for _, field := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// await is the command's exit code.
func await(child *os.Process) (int, error) {
	state, err := child.Wait()
	if err != nil {
		return 0, fmt.Errorf("wait for the command: %w", err)
	}
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}
