//! What can be concluded from counts.

/// ln Gamma(x), x > 0: Lanczos's approximation (g = 7, n = 9), relative error below 1e-13.
pub fn ln_gamma(x: f64) -> f64 {
    const P: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = P[1..].iter().enumerate().fold(P[0], |sum, (i, p)| sum + p / (x + 1.0 + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// ln of the probability of `k` events where their number has this mean and variance: negative binomial, or Poisson where
/// the variance is no larger.
pub fn ln_count(k: f64, mean: f64, variance: f64) -> f64 {
    let mean = mean.max(1e-9);
    if variance <= mean * (1.0 + 1e-6) {
        return k * mean.ln() - mean - ln_gamma(k + 1.0);
    }
    let size = mean * mean / (variance - mean);
    ln_gamma(k + size) - ln_gamma(size) - ln_gamma(k + 1.0)
        + size * (size / (size + mean)).ln()
        + k * (mean / (size + mean)).ln()
}

/// Regularised incomplete beta function I_x(a, b), by Lentz's continued fraction (Press et al., Numerical Recipes, 6.4).
pub fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta(1.0 - x, b, a);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    const TINY: f64 = 1e-300;
    let (mut c, mut d) = (1.0, 1.0 - (a + b) * x / (a + 1.0));
    d = 1.0 / if d.abs() < TINY { TINY } else { d };
    let mut h = d;
    for m in 1..500 {
        let m = f64::from(m);
        for step in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 + step * d;
            d = 1.0 / if d.abs() < TINY { TINY } else { d };
            c = 1.0 + step / c;
            c = if c.abs() < TINY { TINY } else { c };
            h *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-12 {
            break;
        }
    }
    (front.exp() * h / a).min(1.0)
}

/// The `p` quantile of the beta distribution: by halving, to 1e-12.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let mid: f64 = 0.5 * (low + high);
        if beta(mid, a, b) < p { low = mid } else { high = mid }
    }
    0.5 * (low + high)
}

/// The 90 % interval of a share of which `k` of `n` were seen: Clopper and Pearson's (Biometrika 1934), which holds the truth at
/// least so often, whatever it is.
pub fn share(k: f64, n: f64) -> (f64, f64) {
    let low = if k <= 0.0 { 0.0 } else { beta_quantile(0.05, k, n - k + 1.0) };
    let high = if k >= n { 1.0 } else { beta_quantile(0.95, k + 1.0, n - k) };
    (low, high)
}

/// 1 / (1 + e^-x).
pub fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn closed_forms() {
        near(ln_gamma(1.0), 0.0);
        near(ln_gamma(6.0), 120f64.ln());
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
        near(ln_count(3.0, 2.0, 2.0), (8.0 / 6.0 * (-2f64).exp()).ln());
        // size 2, mean 2: each half; three failures before the second success: 4 / 32
        near(ln_count(3.0, 2.0, 4.0), (4.0 / 32f64).ln());
        near(beta(0.3, 1.0, 1.0), 0.3);
        near(beta(0.3, 2.0, 3.0), 0.3483); // 6 x^2 - 8 x^3 + 3 x^4
        near(beta(0.9, 2.0, 3.0), 0.9963);
        near(beta_quantile(0.3483, 2.0, 3.0), 0.3);
    }

    #[test]
    fn a_share_of_none_and_of_all_ends_at_the_end() {
        assert_eq!(share(0.0, 100.0).0, 0.0);
        assert_eq!(share(100.0, 100.0).1, 1.0);
        let (low, high) = share(20.0, 1000.0);
        assert!((low - 0.0133).abs() < 2e-4 && (high - 0.0289).abs() < 2e-4, "{low} {high}");
    }

    /// The interval holds the truth in nine of ten, summed exactly over all counts.
    #[test]
    fn coverage() {
        for p in [0.003f64, 0.01, 0.05] {
            let n = 1000.0;
            let ln = |k: f64| {
                ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0) + k * p.ln() + (n - k) * (-p).ln_1p()
            };
            let held: f64 = (0..200)
                .map(f64::from)
                .filter(|&k| {
                    let (low, high) = share(k, n);
                    low <= p && p <= high
                })
                .map(|k| ln(k).exp())
                .sum();
            assert!((0.9..0.97).contains(&held), "{p}: {held}");
        }
    }
}
