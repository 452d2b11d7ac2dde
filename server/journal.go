package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sublet/vnet"
)

// Bounds of what is kept in files: see docs/proof.md.
const (
	keepDays        = 90
	mostEventsOfDay = 8 << 20  // bytes of a tenant, and of the substrate
	mostProofOfDay  = 64 << 10 // bytes of a link
	mostWhy         = 400      // bytes of a reason
	dayForm         = "2006-01-02"
	dayEnd          = ".jsonl"
	eventsDir       = "events"
	proofDir        = "proof"
)

// journal keeps events of each tenant and of the substrate, and runs of proofs by lease, as lines of JSON in a file
// for each day. A line that cannot be written is lost, and said once.
type journal struct {
	dir string // "": nothing is kept
	log *slog.Logger

	mu     sync.Mutex
	number uint64 // of the last event
	day    string // of the last look at what is too old
	failed bool
}

// openJournal goes on after the last event that is kept.
func openJournal(dir string, log *slog.Logger) *journal {
	j := &journal{dir: dir, log: log}
	if dir == "" {
		return j
	}
	for _, of := range j.eventDirs("") {
		days := j.days(of)
		if len(days) > 0 {
			_ = eachLine(filepath.Join(dir, of, days[len(days)-1]+dayEnd), func(h vnet.Happening) { j.number = max(j.number, h.Number) })
		}
	}
	return j
}

// tenantEvents is the directory of a tenant's events: a tenant who makes many fills
// their own. Those of no lease are in eventsDir itself, with all of a former version.
func tenantEvents(t vnet.TenantID) string {
	if t == "" {
		return eventsDir
	}
	const prefix = "of-" // no name is "..", and none looks like a day
	return filepath.Join(eventsDir, prefix+url.PathEscape(string(t)))
}

// eventDirs are the directories in which events of a tenant can be; of everybody
// if that is "".
func (j *journal) eventDirs(t vnet.TenantID) []string {
	if t != "" {
		return []string{eventsDir, tenantEvents(t)}
	}
	list := []string{eventsDir}
	entries, _ := os.ReadDir(filepath.Join(j.dir, eventsDir)) // there is none before the first event
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, filepath.Join(eventsDir, e.Name()))
		}
	}
	return list
}

// event writes an event down and gives it its number.
func (j *journal) event(h vnet.Happening) vnet.Happening {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.number++
	h.Number, h.Time, h.Why = j.number, h.Time.UTC(), clipTo(h.Why, mostWhy)
	j.append(filepath.Join(tenantEvents(h.Lease.Tenant), h.Time.Format(dayForm)+dayEnd), h, mostEventsOfDay)
	return h
}

// clipTo bounds a text in bytes, at a whole character.
func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// run writes down minutes of a lease that has so many links.
func (j *journal) run(id vnet.LeaseID, serial uint64, links int, r vnet.ProofRun) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.Cause = clipTo(r.Cause, mostWhy)
	j.append(filepath.Join(proofDir, proofName(id, serial), r.From.Format(dayForm)+dayEnd), r, int64(max(links, 1))*mostProofOfDay)
}

// proofName is of one lease for ever: names hold no '.'.
func proofName(id vnet.LeaseID, serial uint64) string {
	return string(id.Tenant) + "." + string(id.Network) + "." + strconv.FormatUint(serial, 10)
}

// append adds a line to a file of bounded size.
func (j *journal) append(name string, value any, most int64) {
	if j.dir == "" {
		return
	}
	text, err := json.Marshal(value)
	if err == nil {
		err = appendLine(filepath.Join(j.dir, name), append(text, '\n'), most)
	}
	if err != nil && !j.failed {
		j.log.Error("events and proofs are not kept", slog.Any("because", err))
	}
	j.failed = err != nil
}

func appendLine(path string, line []byte, most int64) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if info, err := f.Stat(); err != nil || info.Size()+int64(len(line)) > most {
		return errors.Join(err, f.Close()) // a day that is full ends there
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// days lists the days of which a directory has files, in order.
func (j *journal) days(of string) (days []string) {
	entries, err := os.ReadDir(filepath.Join(j.dir, of))
	if j.dir == "" || err != nil {
		return nil
	}
	for _, e := range entries {
		if day, ok := strings.CutSuffix(e.Name(), dayEnd); ok {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	return days
}

// each reads what was written down on a day and after it.
func each[T any](j *journal, of string, since time.Time, do func(T)) error {
	for _, day := range j.days(of) {
		if day < since.UTC().Format(dayForm) {
			continue
		}
		if err := eachLine(filepath.Join(j.dir, of, day+dayEnd), do); err != nil {
			return err
		}
	}
	return nil
}

// eachLine reads a file. A line that was cut off, by a crash, is left out.
func eachLine[T any](path string, do func(T)) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var value T
		if json.Unmarshal(lines.Bytes(), &value) == nil {
			do(value)
		}
	}
	return lines.Err()
}

// due says that clean was not called today.
func (j *journal) due(now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.dir != "" && j.day != now.UTC().Format(dayForm)
}

// clean removes, once a day, events of more than keepDays ago, and proofs of
// leases that do not live of which the last is as old.
func (j *journal) clean(now time.Time, lives func(name string) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	today := now.UTC().Format(dayForm)
	if j.dir == "" || j.day == today {
		return
	}
	j.day = today
	oldest := now.UTC().AddDate(0, 0, -keepDays).Format(dayForm)
	for _, of := range j.eventDirs("") {
		for _, day := range j.days(of) {
			if day < oldest {
				_ = os.Remove(filepath.Join(j.dir, of, day+dayEnd)) // tried again tomorrow
			}
		}
		if of != eventsDir {
			_ = os.Remove(filepath.Join(j.dir, of)) // if nothing is left in it
		}
	}
	entries, _ := os.ReadDir(filepath.Join(j.dir, proofDir))
	for _, e := range entries {
		of := filepath.Join(proofDir, e.Name())
		if days := j.days(of); !lives(e.Name()) && (len(days) == 0 || days[len(days)-1] < oldest) {
			_ = os.RemoveAll(filepath.Join(j.dir, of)) // likewise
		}
	}
}
