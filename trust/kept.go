package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// kept is what a file of tokens holds. It does not change: another one takes its place.
type kept struct {
	list  []storedToken // in the order in which they were made
	byID  map[string]storedToken
	until time.Time // when the last one expires
}

func keptOf(list []storedToken) *kept {
	k := &kept{list: list, byID: make(map[string]storedToken, len(list))}
	for _, s := range list {
		k.byID[s.ID] = s
		if s.Expires.After(k.until) {
			k.until = s.Expires
		}
	}
	return k
}

// valid is a copy of the tokens that have not expired.
func (t *Tokens) valid() []storedToken {
	now := t.now()
	return slices.DeleteFunc(slices.Clone(t.kept.Load().list), func(s storedToken) bool { return !now.Before(s.Expires) })
}

// keep writes the file anew, for nobody else to read, and takes it on.
func (t *Tokens) keep(list []storedToken) error {
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(t.path), filepath.Base(t.path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep tokens: %w", err)
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), t.path)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("keep tokens: %w", err)
	}
	t.kept.Store(keptOf(list))
	t.endUses()
	return nil
}

// endUses ends what is under way with tokens that are not kept any more.
func (t *Tokens) endUses() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, use := range t.uses {
		if _, ok := t.kept.Load().byID[id]; !ok {
			close(use)
			delete(t.uses, id)
		}
	}
}
