package openflow

import (
	"io"
	"os"
	"strings"
	"time"

	"sublet/plan"
)

const (
	toldFile = "told"           // in which a process says what its tenant is to know
	toldMost = 4096             // bytes of it that are read
	toldRest = 30 * time.Second // between two times that a switch is listened to: its tenant can make it say much
)

// listen takes down what processes have said.
func (p *Part) listen(keys []string) {
	for _, key := range keys {
		p.mu.Lock()
		rests := time.Since(p.heard[key]) < toldRest
		p.mu.Unlock()
		if rests {
			continue
		}
		text := p.told(key)
		s := p.written(key).Switch
		if text == "" || s.OpenFlow == nil {
			continue
		}
		was := s
		was.OpenFlow = &plan.OpenFlow{Told: text}
		p.mu.Lock()
		p.heard[key] = time.Now()
		p.mended = append(p.mended, plan.Step{Op: plan.Set, Item: s, Was: was})
		p.mu.Unlock()
	}
}

// told is the last that a process has said, which is forgotten; "": nothing.
func (p *Part) told(key string) string {
	f, err := os.OpenFile(p.file(key, toldFile), os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, toldMost))
	if len(text) == 0 || f.Truncate(0) != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
