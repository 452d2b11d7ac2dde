package join

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
	wireguard "golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
)

// Command is the hidden subcommand that carries packets of one join.
const Command = "__join"

// Files that it gets from the agent.
const (
	fileUDP = iota + 3
	fileTUN
	fileKeys
)

// nobody has no files and no processes.
const nobody = 65534

// Main is the hidden subcommand's work. It returns the exit code.
func Main() int {
	runtime.GOMAXPROCS(2)
	if err := carry(); err != nil {
		fmt.Fprintln(os.Stderr, "sublet:", err)
		return 1
	}
	return 0
}

// carry runs WireGuard between the files until there is no device any more.
func carry() error {
	socket, err := net.FilePacketConn(os.NewFile(fileUDP, "udp"))
	if err != nil {
		return err
	}
	udp, ok := socket.(*net.UDPConn)
	if !ok {
		return errors.New("the socket is not of UDP")
	}
	keys, err := net.FileListener(os.NewFile(fileKeys, "keys"))
	if err != nil {
		return err
	}
	// A directory in which nobody can make a file, and of which nothing is left
	// when the process ends.
	if err := errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), unix.Chroot("/proc/self/fdinfo"), unix.Chdir("/")); err != nil {
		return err
	}
	if err := leaveRights(); err != nil {
		return err
	}
	between, _, err := tun.CreateUnmonitoredTUNFromFD(fileTUN)
	if err != nil {
		return err
	}
	d := wireguard.NewDevice(between, newBind(udp), wireguard.NewLogger(wireguard.LogLevelSilent, ""))
	if err := d.Up(); err != nil {
		return err
	}
	go func() {
		for {
			c, err := keys.Accept()
			if err != nil {
				return
			}
			go d.IpcHandle(c)
		}
	}()
	<-d.Wait()
	return nil
}

// leaveRights makes all threads those of nobody: what a packet could make the
// process do, it then may not.
func leaveRights() error {
	return errors.Join(syscall.Setgroups(nil), syscall.Setresgid(nobody, nobody, nobody), syscall.Setresuid(nobody, nobody, nobody))
}
