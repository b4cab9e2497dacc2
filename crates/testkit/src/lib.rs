//! What the tests of clrscope share: runtimes, fixtures, known answers.
