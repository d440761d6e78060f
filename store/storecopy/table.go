package storecopy

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"

	"leasehold/internal/fault"
)

// copier is one run of Copy.
type copier struct {
	from   Store
	to     Target
	tables []Table
	tell   func(Progress)
}

// carry copies the rows of t behind the last one that the target has.
func (c *copier) carry(ctx context.Context, t Table) error {
	last, err := c.to.LastRow(ctx, t)
	if err != nil {
		return err
	}
	total, err := c.from.CountRows(ctx, t)
	if err != nil {
		return err
	}
	p := Progress{Step: "copying", Table: t.Name, Total: total}
	if last != nil {
		if p.Rows, err = c.to.CountRows(ctx, t); err != nil {
			return err
		}
	}
	var batch []Row
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := c.to.WriteRows(ctx, t, batch); err != nil {
			return err
		}
		p.Rows += int64(len(batch))
		c.tell(p)
		batch, size = batch[:0], 0
		return nil
	}
	err = c.from.ReadRows(ctx, t, t.key(last), func(r Row) error {
		r = c.arriving(t, r)
		n := r.size()
		if len(batch) > 0 && (len(batch) == batchRows || size+n > batchBytes) {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, size = append(batch, r), size+n
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// settle compares t on both sides. When it differs, as after a copy that was stopped
// and a program that ran on the source before it went on, it is copied from its
// beginning, once.
func (c *copier) settle(ctx context.Context, t Table) (table CopiedTable, again bool, err error) {
	for {
		is, err := c.digest(ctx, t, c.to, func(_ Table, r Row) Row { return r })
		if err != nil {
			return table, again, err
		}
		wanted, err := c.digest(ctx, t, c.from, c.arriving)
		switch {
		case err != nil:
			return table, again, err
		case is == wanted:
			return is, again, nil
		case again:
			return table, again, fault.Errorf(fault.Temporary, "%d rows arrived and %d were to, or they differ, twice: something writes to one of the stores; stop it, then run this again", is.Rows, wanted.Rows)
		}
		again = true
		if err := c.to.ClearTable(ctx, t); err != nil {
			return table, again, err
		}
		if err := c.carry(ctx, t); err != nil {
			return table, again, err
		}
	}
}

// arriving is a row of the source as it is to be in the target.
func (c *copier) arriving(t Table, r Row) Row {
	if column, ok := emptied[t.Name]; ok {
		r = slices.Clone(r)
		r[slices.Index(t.Columns, column)] = nil
	}
	return c.to.Kept(t, r)
}

// digest reads a whole table.
func (c *copier) digest(ctx context.Context, t Table, s Store, as func(Table, Row) Row) (CopiedTable, error) {
	d := CopiedTable{Name: t.Name}
	total, err := s.CountRows(ctx, t)
	if err != nil {
		return d, err
	}
	sum := sha256.New()
	err = s.ReadRows(ctx, t, nil, func(r Row) error {
		if d.Rows++; d.Rows%batchRows == 0 {
			c.tell(Progress{Step: "comparing", Table: t.Name, Rows: d.Rows, Total: total})
		}
		return as(t, r).write(sum)
	})
	d.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return d, err
}

// write adds a row to a digest: each value with its kind and its length, so that no
// two rows are written alike.
func (r Row) write(sum hash.Hash) error {
	var head [9]byte
	for _, v := range r {
		text := ""
		switch v := v.(type) {
		case nil:
			head[0] = 'n'
			binary.BigEndian.PutUint64(head[1:], 0)
		case int64:
			head[0] = 'i'
			binary.BigEndian.PutUint64(head[1:], uint64(v)) //nolint:gosec // the bits, whatever they mean
		case string:
			head[0], text = 's', v
			binary.BigEndian.PutUint64(head[1:], uint64(len(v)))
		default:
			return fmt.Errorf("a value is a %T, which no store gives", v)
		}
		sum.Write(head[:]) // it never fails
		sum.Write([]byte(text))
	}
	return nil
}

// size is about what a row takes in memory.
func (r Row) size() int {
	n := 0
	for _, v := range r {
		if text, ok := v.(string); ok {
			n += len(text)
		}
		n += 16
	}
	return n
}

// key are the values of a row's key; nil of no row.
func (t Table) key(r Row) Row {
	if r == nil {
		return nil
	}
	key := make(Row, len(t.Key))
	for i, column := range t.Key {
		key[i] = r[slices.Index(t.Columns, column)]
	}
	return key
}
