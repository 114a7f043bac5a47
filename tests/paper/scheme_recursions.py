"""Each scheme's own recursion over given updates, written out as its paper has it."""

import numpy as np


def heavy_ball_damped(x, updates, eta, beta):
    d = np.zeros_like(x)
    for D in updates:
        d = beta * d + (1 - beta) * D
        x = x - eta * d
    return x


def heavy_ball_summed(x, updates, lr, beta):
    v = np.zeros_like(x)
    for D in updates:
        v = beta * v + D
        x = x - lr * v
    return x


def nesterov_damped(x, updates, eta, beta):
    d = np.zeros_like(x)
    for D in updates:
        d = beta * d + (1 - beta) * D
        x = x - eta * ((1 - beta) * D + beta * d)
    return x


def nesterov_summed(x, updates, lr, beta):
    v = np.zeros_like(x)
    for D in updates:
        v = beta * v + D
        x = x - lr * (D + beta * v)
    return x


def quasi_hyperbolic(x, updates, eta, beta, nu):
    d = np.zeros_like(x)
    for D in updates:
        d = (1 - beta) * D + beta * d
        x = x - eta * ((1 - nu) * D + nu * d)
    return x


def synthesised(x, updates, a, b1, b2):
    s, s_prev = x, x
    for D in updates:
        s, s_prev = s - a * D + b1 * (s - s_prev), s
        x = s + b2 * (s - s_prev)
    return x


def triple_momentum(x, updates, L, kappa):
    r = 1 - 1 / np.sqrt(kappa)
    return synthesised(x, updates, (1 + r) / L, r**2 / (2 - r), r**2 / ((1 + r) * (2 - r)))


def robust_momentum(x, updates, L, kappa, r):
    a = kappa * (1 - r) ** 2 * (1 + r) / L
    b1 = kappa * r**3 / (kappa - 1)
    b2 = r**3 / ((kappa - 1) * (1 - r) ** 2 * (1 + r))
    return synthesised(x, updates, a, b1, b2)


def pid_controller(x, updates, kP, kI, kD):
    beta = kD / (kD - kP)
    start, total, V, before = x, np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for D in updates:
        error = -D
        V = beta * V + (1 - beta) * (error - before)
        total, before = total + error, error
        x = start + kP * error + kI * total + kD * V
    return x


def pid_optimiser(x, updates, a, r, Kd):
    V, W, before = np.zeros_like(x), np.zeros_like(x), np.zeros_like(x)
    for D in updates:
        V = a * V - r * D
        W = a * W + (1 - a) * (D - before)
        before = D
        x = x + V + Kd * W
    return x


def accelerated(x, updates, delta, kappa, xi, eps=0.7):
    alpha = 1 - eps**2 * xi / kappa
    w = x
    for D in updates:
        w = alpha * w + (1 - alpha) * (x - kappa * delta / eps * D)
        x = eps / (eps + 1 - alpha) * (x - delta * D) + (1 - alpha) / (eps + 1 - alpha) * w
    return x


def primal_averaging(x, updates, a, mu_x, mu_y):
    z = mean = sent = x
    for D in updates:
        z = z - a * D
        mean = mu_x * mean + (1 - mu_x) * z
        sent = mu_y * mean + (1 - mu_y) * z
    return sent


def ema_nesterov(x, updates, b, g):
    m, sent = np.zeros_like(x), x
    for D in updates:
        x, before = sent - D, x  # A(x + b m): clients start from what was sent and move it by -D
        m = g * m + (1 - g) * (x - before)
        sent = x + b * m
    return sent


def look_ahead(x, updates, lam):
    m = np.zeros_like(x)
    for D in updates:
        m = lam * m + D
        x = x - m
    return x - lam * m


def outer_nesterov(x, updates, lr, mu):
    b = 0.0
    for D in updates:
        b = mu * b + D
        x = x - lr * (D + mu * b)
    return x


def plain(x, updates, eta=1.0):
    for D in updates:
        x = x - eta * D
    return x
