#include "support/tiny_block.h"

#include "pair/pair_refine.h"
#include "support/check.h"
#include "support/tiny.h"

tiny_block tiny_block_open(const char *text, int32_t block)
{
    tiny_block t;
    t.p = tiny_problem(text);
    assert_ok(decompose_cuts_new(&t.s, t.p));
    assert_true(block < t.s->n_blocks);
    assert_ok(decompose_block_new(&t.b, t.p, t.s, block));
    return t;
}

void tiny_block_close(tiny_block *t)
{
    decompose_block_free(t->b);
    decompose_cuts_free(t->s);
    moirai_problem_free(t->p);
}

pair_chain *tiny_chain(const moirai_problem *p)
{
    bool cuts[64] = {false};
    pair_chain *c;
    assert_true(p->n_ops <= 64);
    assert_ok(pair_chain_over(&c, p, cuts));
    assert_ok(pair_open(c, 0, 0, 0));
    return c;
}

void tiny_pair_open(tiny_pair *f, const char *text)
{
    f->p = tiny_problem(text);
    assert_ok(pair_chain_new(&f->c, f->p));
    f->class_ = f->c->s->block_class[1];
    assert_ok(pair_open(f->c, f->class_, 0, 0));
    f->x = f->c->pair[pair_chain_index(f->c, f->class_, 0, 0)];
}

void tiny_pair_close(tiny_pair *f)
{
    pair_chain_free(f->c);
    moirai_problem_free(f->p);
}
