//! The loop machine, gate board, turns, budgets, convergence, ledgers, prompts. Pure.
