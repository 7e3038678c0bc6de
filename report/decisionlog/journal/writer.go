package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// writer writes the log in a single goroutine.
type writer struct {
	journal    *Journal
	key        *decisionlog.Key
	chain      *decisionlog.Chain
	name       string // of the chain
	files      *files // nil for a stream
	compressor *compressor
	complaints complaints

	batch []item
	text  []byte
	// unsigned counts the lines since the last checkpoint, and signed is that checkpoint's time.
	unsigned uint64
	signed   time.Time
	// head is the last checkpoint, until its copy is written.
	head []byte
	// synced and pruned are the times of the last flush and the last pruning.
	synced, pruned time.Time
}

// open opens the log and writes its first line.
func (j *Journal) open(key *decisionlog.Key) (*writer, error) {
	now := time.Now()
	w := &writer{journal: j, key: key, complaints: newComplaints(j.config.Log), signed: now, synced: now, pruned: now}
	before := found{why: decisionlog.WhyNew, chain: newName()}
	if j.config.Folder != "" {
		var err error
		w.files, before, err = openFiles(j.config.Folder, j.disk, j.config.Sync != SyncNever, now)
		if err != nil {
			return nil, err
		}
		w.compressor = newCompressor(j.config.Folder, w.files.sync, w.complaints)
	}
	w.name = before.chain
	var err error
	w.chain, err = decisionlog.NewChain(j.config.Replica, before.position)
	if err != nil {
		return nil, err
	}
	before.report(w.journal.config.Log)
	opening := w.opening(before.why)
	opening.Open.Torn, opening.Open.Damaged, opening.Open.Missing = before.torn, before.damaged, before.missing
	w.text, err = w.add(w.text[:0], opening)
	if err != nil {
		return nil, err
	}
	if err := w.write(); err != nil {
		if w.files != nil {
			err = errors.Join(err, w.files.close())
		}
		return nil, fmt.Errorf("decision log: %w", err)
	}
	w.settle()
	w.compressLeft()
	return w, nil
}

// report logs the state of the existing log.
func (before found) report(log *slog.Logger) {
	if before.torn != nil {
		log.Warn("decision log: a crash left an unfinished line, which is saved next to the log",
			slog.String("file", before.torn.File), slog.Int64("bytes", before.torn.Bytes))
	}
	if before.damaged != "" || before.missing > 0 {
		log.Error("decision log: its content differs from the written lines; run quaymaster log verify",
			slog.String("damaged", before.damaged), slog.Uint64("missing", before.missing))
	}
}

func (w *writer) opening(why string) *decisionlog.Entry {
	return &decisionlog.Entry{Kind: decisionlog.KindOpen, Time: time.Now(), Open: &decisionlog.Open{
		Chain: w.name, Why: why, Program: w.journal.config.Program, Key: w.key.ID(),
	}}
}

// add appends a line to the text.
func (w *writer) add(text []byte, e *decisionlog.Entry) ([]byte, error) {
	text, err := w.chain.Append(text, e)
	if err == nil {
		w.unsigned++
	}
	return text, err
}

// write writes the text to the file or the stream.
func (w *writer) write() error {
	if w.files == nil {
		_, err := w.journal.config.Stream.Write(w.text)
		return err
	}
	return w.files.write(w.text)
}

// commit writes a batch. A batch that cannot be written is lost as a whole.
func (w *writer) commit(batch []item) {
	from := w.place()
	lost := w.journal.takeLost()
	lines, objects, waiting, err := w.encode(batch, lost)
	if err == nil && w.unsigned >= w.journal.config.CheckpointLines {
		err = w.checkpoint(false)
	}
	if err == nil && len(w.text) > 0 {
		err = w.write()
	}
	if err == nil && (waiting || w.journal.config.Sync == SyncAlways) {
		err = w.flush()
	}
	if err != nil {
		w.journal.giveBack(lost)
		w.journal.lose(objects, err.Error())
		w.undo(from, err)
	} else {
		w.journal.written.Add(lines)
		w.settle()
	}
	for i := range batch {
		if batch[i].waiting != nil {
			batch[i].waiting <- err
		} else {
			w.journal.memory.Release(batch[i].decided)
		}
		batch[i] = item{} // release the memory
	}
	w.turn()
}

// encode encodes a batch. Only the objects that cannot be encoded are lost.
func (w *writer) encode(batch []item, lost decisionlog.Lost) (lines, objects uint64, waiting bool, err error) {
	w.text = w.text[:0]
	if w.files != nil && w.files.failed {
		err = w.mend()
	}
	if err == nil && lost.Records > 0 {
		w.text, err = w.add(w.text, &decisionlog.Entry{Kind: decisionlog.KindLost, Time: time.Now(), Lost: &lost})
	}
	for i := range batch {
		if batch[i].waiting != nil {
			waiting = true
			continue
		}
		objects++
		if err != nil {
			continue
		}
		made, failed := w.encodeOne(&batch[i])
		if failed != nil {
			objects--
			w.journal.lose(1, failed.Error())
			w.complaints.report("a decision cannot be written", failed)
			continue
		}
		lines += made
	}
	return lines, objects, waiting, err
}

// encodeOne appends the lines of one object, all or none. It recovers from a panic on a malformed
// object, so that the log continues.
func (w *writer) encodeOne(of *item) (lines uint64, err error) {
	at, unsigned, length := w.chain.Position(), w.unsigned, len(w.text)
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error, which is a defect: %v", p)
		}
		if err != nil {
			w.chain.Return(at)
			lines, w.unsigned, w.text = 0, unsigned, w.text[:length]
		}
	}()
	if of.event != nil {
		w.text, err = w.add(w.text, of.event)
		return 1, err
	}
	decisions := decisionlog.Decisions(of.decided)
	entry := decisionlog.Entry{Kind: decisionlog.KindDecision}
	for i := range decisions {
		entry.Time, entry.Decision = of.decided.Occasion.Time, &decisions[i]
		w.text, err = w.add(w.text, &entry)
		if err != nil {
			return 0, err
		}
	}
	return uint64(len(decisions)), nil
}

// checkpoint appends a checkpoint.
func (w *writer) checkpoint(closed bool) error {
	start := len(w.text)
	text, err := w.chain.AppendCheckpoint(w.text, w.name, time.Now(), closed, w.key)
	if err != nil {
		return err
	}
	w.text, w.unsigned, w.signed = text, 0, time.Now()
	w.head = append(w.head[:0], text[start:]...)
	return nil
}

// place is the state before a batch, for undo.
type place struct {
	position decisionlog.Position
	good     int64
	unsigned uint64
}

func (w *writer) place() place {
	p := place{position: w.chain.Position(), unsigned: w.unsigned}
	if w.files != nil {
		p.good = w.files.good
	}
	return p
}

// undo restores the state before a batch. A stream may have received part of it, so its numbers
// continue and the gap stays visible.
func (w *writer) undo(to place, why error) {
	w.journal.failures.Add(1)
	w.complaints.report("it cannot be written, and decisions are lost", why)
	w.head = w.head[:0]
	w.unsigned = to.unsigned
	if w.files == nil {
		return
	}
	w.chain.Return(to.position)
	w.files.good = to.good
	w.files.failed = true
}

// mend continues after a failure, at the end of the valid data.
func (w *writer) mend() error {
	if err := w.files.mend(w.files.good, time.Now()); err != nil {
		return err
	}
	w.journal.config.Log.Info("decision log: the disk takes lines again")
	return nil
}

// flush makes written data durable.
func (w *writer) flush() error {
	if w.files == nil {
		return nil
	}
	if err := w.files.flush(); err != nil {
		return err
	}
	w.synced = time.Now()
	return nil
}

// settle announces written lines, and stores a copy of the last checkpoint once it is as durable
// as configured.
func (w *writer) settle() {
	j := w.journal
	j.committed.Store(w.chain.Position().Seq)
	if w.files == nil {
		j.flushed.Store(time.Now().UnixNano())
	} else if !w.files.dirty || !w.files.sync {
		j.flushed.Store(time.Now().UnixNano())
		w.keepHead()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
}

func (w *writer) keepHead() {
	if len(w.head) == 0 {
		return
	}
	path := filepath.Join(w.files.folder, decisionlog.HeadName)
	if err := replace(path, w.head, w.files.sync); err != nil {
		w.journal.failures.Add(1)
		w.complaints.report("the copy of the last checkpoint cannot be written", err)
		return
	}
	w.head = w.head[:0]
}

// tend does the periodic work that is due.
func (w *writer) tend() {
	now := time.Now()
	c := &w.journal.config
	sign := w.unsigned > 0 && now.Sub(w.signed) >= c.CheckpointInterval
	if sign || w.owes() {
		w.say(sign)
	}
	if w.files == nil {
		return
	}
	if w.files.dirty && !w.files.failed && c.Sync == SyncInterval && now.Sub(w.synced) >= c.SyncEvery {
		if err := w.flush(); err != nil {
			w.undo(w.place(), err)
		} else {
			w.settle()
		}
	}
	w.turn()
	if now.Sub(w.pruned) >= pruneEvery {
		w.prune(now)
	}
}

// owes reports whether there are losses that the log does not record yet.
func (w *writer) owes() bool {
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	return w.journal.lost.Records > 0
}

// say writes lines other than decisions: losses, removals, a checkpoint.
func (w *writer) say(sign bool, entries ...*decisionlog.Entry) bool {
	from := w.place()
	lost := w.journal.takeLost()
	_, _, _, err := w.encode(nil, lost)
	for _, e := range entries {
		if err == nil {
			w.text, err = w.add(w.text, e)
		}
	}
	if err == nil && sign {
		err = w.checkpoint(false)
	}
	if err == nil && len(w.text) > 0 {
		err = w.write()
	}
	if err == nil && (len(entries) > 0 && w.files != nil && w.files.sync || w.journal.config.Sync == SyncAlways) {
		err = w.flush()
	}
	if err != nil {
		w.journal.giveBack(lost)
		w.undo(from, err)
		return false
	}
	w.settle()
	return true
}

// close signs the log and closes it.
func (w *writer) close() error {
	from := w.place()
	lost := w.journal.takeLost()
	_, _, _, err := w.encode(nil, lost)
	if err == nil {
		err = w.checkpoint(true)
	}
	if err == nil {
		err = w.write()
	}
	if err == nil && w.files != nil && w.files.sync {
		err = w.flush()
	}
	if err != nil {
		w.undo(from, err)
	} else {
		w.settle()
	}
	if w.files != nil {
		if closed := w.files.close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		return fmt.Errorf("decision log: it was not closed in good order: %w", err)
	}
	return nil
}

// remove removes either form of a file.
func remove(path string) error {
	err := os.Remove(path)
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
