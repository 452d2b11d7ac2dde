package vnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/internal/proc"
)

// run is the life of a session's first process: it is root of the host, in
// namespaces of its own, furnishes them, and starts the command without those
// rights.
func (s session) run() (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT)
	runtime.LockOSThread()
	// What this process inherited by mistake, the command shall not.
	unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	owner, err := s.furnish()
	if err != nil {
		return 0, err
	}
	defer owner.Close() // not sooner: nsenter opens it when it gets to run
	if !isThere(s.Argv[0]) {
		fmt.Fprintf(os.Stderr, "sublet: there is no program %s in node %s\n", s.Argv[0], s.Node)
		return 127, nil
	}
	child, err := s.start(owner)
	if err != nil {
		return 0, err
	}
	go forward(signals, child)
	code, err := reap(child)
	if left := leftover(); err == nil && left != "" {
		fmt.Fprintf(os.Stderr, "sublet: ended with the command that started it: %s. A process in a node lives as long as its command does\n", left)
	}
	return code, err
}

// settling is what processes get that end just after their command, such as
// the rest of a pipe, before they count as left behind.
const settling = 20 * time.Millisecond

// leftover names the processes that the command left behind and that end with
// the session: at most three, and how many more.
func leftover() string {
	if len(others()) == 0 {
		return ""
	}
	time.Sleep(settling)
	const most = 3
	names := others()
	if more := len(names) - most; more > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// others are the living processes of the session but this one, by name and
// number.
func others() (names []string) {
	for _, p := range proc.All() {
		if p.PID == os.Getpid() {
			continue
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID))
		names = append(names, fmt.Sprintf("%q", strings.TrimSpace(string(name))))
	}
	return names
}

// join moves this process into the node's control groups and starts it anew:
// its memory, some megabytes, is the node's then.
func (s session) join() error {
	for _, file := range s.Groups {
		if err := os.WriteFile(file, []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	s.Groups = nil
	spec, err := json.Marshal(s)
	if err != nil {
		return err
	}
	err = unix.Exec(self, []string{self, InitCommand, sessionCommand}, append(os.Environ(), kernel.SpecVariable+"="+string(spec)))
	return fmt.Errorf("start anew in the node's control group: %w", err)
}

// furnish sets up host name, file systems and network, and returns the user
// namespace to enter.
func (s session) furnish() (*os.File, error) {
	owner, err := kernel.UserNamespace(s.Namespace)
	if err != nil {
		return nil, err
	}
	if err := unix.Sethostname([]byte(s.Node)); err != nil {
		return nil, fmt.Errorf("set the host name: %w", err)
	}
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, err
	}
	network, err := kernel.OpenNamespace(s.Namespace)
	if err != nil {
		return nil, err
	}
	defer network.Close()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("enter %s: %w", s.Namespace, err)
	}
	unix.Unshare(unix.CLONE_NEWCGROUP) // only hides the group's name; old kernels cannot
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("forbid set-uid programs: %w", err)
	}
	return owner, s.mounts()
}

const safe = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mounts gives the session its own /proc, /sys and hosts file, and hides the
// run directory: other nodes' namespaces and the server's socket. Parts of
// /proc and /sys that speak of the whole machine are read only, since a
// session of root's own networks has the user number of root.
func (s session) mounts() error {
	if err := s.showNames(); err != nil {
		return err
	}
	if err := s.hideRun(); err != nil {
		return err
	}
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

// showNames gives the session the names of its network, also on a host that
// has no such file itself.
func (s session) showNames() error {
	if _, err := os.Stat(s.Hosts); err != nil {
		return nil
	}
	if _, err := os.Stat(hostsFile); os.IsNotExist(err) {
		if err := s.makeHostsFile(); errors.Is(err, unix.ENODEV) {
			fmt.Fprintln(os.Stderr, "sublet: names of the network are not known here: the host has no "+hostsFile+", and its kernel no overlayfs")
			return nil
		} else if err != nil {
			return fmt.Errorf("make %s: %w", hostsFile, err)
		}
	}
	return mount(s.Hosts, hostsFile, "", unix.MS_BIND, "")
}

// makeHostsFile puts an empty one into /etc as this mount namespace sees it. It
// is made where the run directory is, which is uncovered again for now.
func (s session) makeHostsFile() error {
	if err := mount("sublet", s.Run, "tmpfs", safe, "size=64k,mode=0755"); err != nil {
		return err
	}
	above := s.Run + "/etc"
	err := os.Mkdir(above, 0o755)
	if err == nil {
		err = os.WriteFile(above+"/hosts", nil, 0o644)
	}
	if err == nil {
		err = mount("sublet", "/etc", "overlay", unix.MS_RDONLY, "lowerdir="+above+":/etc")
	}
	return errors.Join(err, unix.Unmount(s.Run, unix.MNT_DETACH))
}

// hideRun covers the run directory with one that holds this program only, or
// the one that has taken its place on disk since it started.
func (s session) hideRun() error {
	path, err := os.Readlink(self)
	if err != nil {
		return err
	}
	exe, missing := os.Open(strings.TrimSuffix(path, " (deleted)")) // before it is covered
	if missing == nil {
		defer exe.Close()
	}
	if err := s.showScratch(); err != nil {
		return err
	}
	if err := mount("sublet", s.Run, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0755"); err != nil {
		return err
	}
	if missing == nil {
		inside := SelfInside(s.Run)
		if err := os.WriteFile(inside, nil, 0o755); err != nil {
			return err
		}
		if err := mount(fmt.Sprintf("/proc/self/fd/%d", exe.Fd()), inside, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return mount("", s.Run, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
}

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
// own, in the foreground of its terminal.
func (s session) start(owner *os.File) (*os.Process, error) {
	nsenter, err := findNsenter()
	if err != nil {
		return nil, err
	}
	// nsenter opens the descriptor of this process (1 in its own /proc), so
	// the command inherits nothing.
	argv := append([]string{"nsenter", fmt.Sprintf("--user=/proc/1/fd/%d", owner.Fd()), "--"}, s.Argv...)
	return os.StartProcess(nsenter, argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Foreground: s.TTY},
	})
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

// forward passes signals on to the command's process group.
func forward(signals <-chan os.Signal, child *os.Process) {
	for s := range signals {
		unix.Kill(-child.Pid, s.(unix.Signal)) // one that is gone is fine
	}
}

// reap waits for the command, and for orphans on the way, as process 1 must.
func reap(child *os.Process) (int, error) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for the command: %w", err)
		case pid == child.Pid && status.Exited():
			return status.ExitStatus(), nil
		case pid == child.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil
		}
	}
}
