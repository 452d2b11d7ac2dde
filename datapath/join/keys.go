package join

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"sublet/plan"
	"sublet/report"
)

// keys of a join. The machine's private key is never kept.
type keys struct {
	Serial  uint64      `json:"serial"` // of the lease that they are for
	Private wgtypes.Key `json:"private"`
	Machine wgtypes.Key `json:"machine"` // its public one; zero: nobody joins
}

func (p *Part) keyFile(key string) string { return filepath.Join(p.data, key) }

// keysOf reads those of a join; without any, or with those of another lease of its
// name, it makes new ones.
func (p *Part) keysOf(j plan.Join) (k keys, err error) {
	text, err := os.ReadFile(p.keyFile(j.Key()))
	if err == nil && json.Unmarshal(text, &k) == nil && k.Serial == j.Serial && k.Private != (wgtypes.Key{}) {
		return k, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return keys{}, err
	}
	k = keys{Serial: j.Serial}
	if k.Private, err = wgtypes.GeneratePrivateKey(); err != nil {
		return keys{}, err
	}
	return k, p.keep(j.Key(), k)
}

func (p *Part) keep(key string, k keys) error {
	if err := os.MkdirAll(p.data, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(k)
	if err != nil {
		return err
	}
	return replace(p.keyFile(key), text)
}

func (p *Part) forget(key string) error {
	p.keys.Lock()
	defer p.keys.Unlock()
	if err := os.Remove(p.keyFile(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_ = os.Remove(p.data) // refused while there are others
	return nil
}

// Join lets a machine with a public key join, and nobody else from now on. Without
// one, a pair is made for it, of which only the answer has the private one.
func (p *Part) Join(key, public string) (answer report.Joined, err error) {
	p.busy.RLock()
	defer p.busy.RUnlock()
	p.keys.Lock()
	defer p.keys.Unlock()
	j, ok := p.written(key)
	if !ok {
		return answer, fmt.Errorf("%s is not there: no machine can join yet", key)
	}
	k, err := p.keysOf(j)
	if err != nil {
		return answer, err
	}
	if public == "" {
		private, err := wgtypes.GeneratePrivateKey()
		if err != nil {
			return answer, err
		}
		answer.Private, k.Machine = private.String(), private.PublicKey()
	} else if k.Machine, err = wgtypes.ParseKey(public); err != nil || k.Machine == (wgtypes.Key{}) {
		return answer, errors.New("that is no public key of WireGuard: give the line that wg pubkey prints")
	}
	if err := p.give(j, k); err != nil {
		return report.Joined{}, err
	}
	answer.Public, answer.Machine = k.Private.PublicKey().String(), k.Machine.String()
	answer.Endpoint, answer.MTU, answer.Address = j.At, j.MTU, single(j.Address)
	for _, a := range j.Others {
		answer.Others = append(answer.Others, single(a))
	}
	return answer, nil
}

// Revoke lets nobody join.
func (p *Part) Revoke(key string) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	p.keys.Lock()
	defer p.keys.Unlock()
	j, ok := p.written(key)
	if !ok {
		return fmt.Errorf("%s is not there: nobody can join", key)
	}
	k, err := p.keysOf(j)
	if err != nil {
		return err
	}
	k.Machine = wgtypes.Key{}
	return p.give(j, k)
}

// give keeps keys and tells them the process. Who is to be shut out is forgotten
// first, and who joins is kept first.
func (p *Part) give(j plan.Join, k keys) error {
	if err := p.keep(j.Key(), k); err != nil {
		return err
	}
	return p.configure(j, k)
}

// askTime is in which a process answers, on a busy machine.
const askTime = 10 * time.Second

// configure tells the process its key and who may join, by WireGuard's
// cross-platform interface (wireguard.com/xplatform).
func (p *Part) configure(j plan.Join, k keys) error {
	lines := []string{"set=1", "private_key=" + hex.EncodeToString(k.Private[:]), "replace_peers=true"}
	if k.Machine != (wgtypes.Key{}) {
		lines = append(lines, "public_key="+hex.EncodeToString(k.Machine[:]), "replace_allowed_ips=true", "allowed_ip="+single(j.Address).String())
	}
	answer, err := p.ask(j.Key(), lines)
	if err != nil {
		return fmt.Errorf("tell its process the keys: %w", err)
	}
	if !slices.Contains(answer, "errno=0") {
		return fmt.Errorf("its process refuses the keys: %s", strings.Join(answer, " "))
	}
	return nil
}

// ask sends lines to a join's process and reads its answer.
func (p *Part) ask(key string, lines []string) ([]string, error) {
	// A path of a socket has at most 107 bytes, which that of a directory may exceed.
	dir, err := os.Open(p.dir(key))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c, err := net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd()))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(askTime)); err != nil {
		return nil, err
	}
	if _, err := c.Write([]byte(strings.Join(lines, "\n") + "\n\n")); err != nil {
		return nil, err
	}
	return readAnswer(c)
}

// mostAnswer bounds what a process answers.
const mostAnswer = 64 << 10

func readAnswer(c net.Conn) ([]string, error) {
	var text []byte
	for part := make([]byte, 4096); len(text) < mostAnswer; {
		n, err := c.Read(part)
		if text = append(text, part[:n]...); strings.HasSuffix(string(text), "\n\n") {
			return strings.Split(strings.TrimSpace(string(text)), "\n"), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the answer does not end")
}
